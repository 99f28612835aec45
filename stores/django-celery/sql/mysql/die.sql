INSERT INTO celery_outbox_dead_letter (created_at, dead_at, retries, task_id, task_name, args, kwargs, options,
    sentry_trace_id, sentry_baggage, structlog_context, schema_version, redacted_args, redacted_kwargs, failure_reason)
SELECT created_at, UTC_TIMESTAMP(6), retries, task_id, task_name, args, kwargs, options, sentry_trace_id, sentry_baggage,
    structlog_context, schema_version, redacted_args, redacted_kwargs, ?
FROM celery_outbox WHERE id = ? AND updated_at = ?
