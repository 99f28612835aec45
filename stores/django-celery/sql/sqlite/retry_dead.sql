INSERT INTO celery_outbox (created_at, retries, task_id, task_name, args, kwargs, options, sentry_trace_id,
    sentry_baggage, structlog_context, schema_version, redacted_args, redacted_kwargs)
SELECT ?2, 0, task_id, task_name, args, kwargs, options, sentry_trace_id, sentry_baggage, structlog_context,
    schema_version, redacted_args, redacted_kwargs
FROM celery_outbox_dead_letter WHERE id = ?1
