-- Three ways to be eligible, each with its own index.
-- The Python relay stamps a row that it claims for a retry, and keeps its retry_after: a row with a stamp later than its
-- retry_after is in flight there, until the stamp is stale.
-- A retry_after in the past would leave the row eligible while it is in flight.
UPDATE celery_outbox SET updated_at = ?1, retry_after = NULL
WHERE id IN (
    SELECT id FROM (
        SELECT id FROM (SELECT id FROM celery_outbox
            WHERE updated_at IS NULL AND schema_version BETWEEN 1 AND 1 ORDER BY id LIMIT ?3)
        UNION ALL
        SELECT id FROM (SELECT id FROM celery_outbox
            WHERE retry_after <= ?1 AND schema_version BETWEEN 1 AND 1
                AND (updated_at < retry_after OR updated_at <= strftime('%Y-%m-%d %H:%M:%f', ?1, ?2))
            ORDER BY retry_after, id LIMIT ?3)
        UNION ALL
        SELECT id FROM (SELECT id FROM celery_outbox
            WHERE retry_after IS NULL AND updated_at <= strftime('%Y-%m-%d %H:%M:%f', ?1, ?2)
                AND schema_version BETWEEN 1 AND 1
            ORDER BY updated_at, id LIMIT ?3)
    ) ORDER BY id LIMIT ?3
)
RETURNING id, task_id, task_name, args, kwargs, options, retries, created_at, sentry_trace_id, sentry_baggage,
    structlog_context
