INSERT INTO celery_outbox_dead_letter (created_at, dead_at, retries, task_id, task_name, args, kwargs, options,
    sentry_trace_id, sentry_baggage, structlog_context, schema_version, redacted_args, redacted_kwargs, failure_reason)
SELECT created_at, ?2, retries, task_id, task_name, args, kwargs, options, sentry_trace_id, sentry_baggage,
    structlog_context, schema_version, redacted_args, redacted_kwargs, ?3
FROM celery_outbox WHERE id = ?1 AND updated_at = ?4
