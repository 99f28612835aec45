SELECT id, task_id, task_name, args, kwargs, options, retries, created_at, sentry_trace_id, sentry_baggage,
    structlog_context
FROM celery_outbox
WHERE (updated_at IS NULL OR retry_after <= ? OR (updated_at <= CAST(? AS DATETIME(6)) - INTERVAL ? MICROSECOND AND retry_after IS NULL))
    AND schema_version BETWEEN 1 AND 1
ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED
