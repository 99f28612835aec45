-- The Python relay stamps a row that it claims for a retry, and keeps its retry_after: a row with a stamp later than its
-- retry_after is in flight there, until the stamp is stale.
SELECT id, task_id, task_name, args, kwargs, options, retries, created_at, sentry_trace_id, sentry_baggage,
    structlog_context
FROM celery_outbox
WHERE (updated_at IS NULL OR (retry_after <= ? AND updated_at < retry_after)
        OR ((retry_after IS NULL OR retry_after <= ?) AND updated_at <= CAST(? AS DATETIME(6)) - INTERVAL ? MICROSECOND))
    AND schema_version BETWEEN 1 AND 1
ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED
