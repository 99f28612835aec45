SELECT (SELECT count(*) FROM (
        SELECT id, created_at, updated_at, retries, retry_after, task_id, task_name, args, kwargs, options,
            sentry_trace_id, sentry_baggage, structlog_context, schema_version, redacted_args, redacted_kwargs
        FROM celery_outbox LIMIT 1) AS outbox),
    (SELECT count(*) FROM (
        SELECT id, created_at, dead_at, retries, failure_reason, schema_version, redacted_args, redacted_kwargs
        FROM celery_outbox_dead_letter LIMIT 1) AS dead)
