-- Three ways to be eligible, each with its own index: one condition with OR would scan the primary key past every waiting
-- row. Rows that another relay is claiming now are locked, and skipped. Locked rows beyond the limit are unlocked when
-- this statement commits.
-- The Python relay stamps a row that it claims for a retry, and keeps its retry_after: a row with a stamp later than its
-- retry_after is in flight there, until the stamp is stale.
WITH fresh AS (
    SELECT id FROM celery_outbox
    WHERE updated_at IS NULL AND schema_version BETWEEN 1 AND 1
    ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
), due AS (
    SELECT id FROM celery_outbox
    WHERE retry_after <= statement_timestamp() AND schema_version BETWEEN 1 AND 1
        AND (updated_at < retry_after OR updated_at <= statement_timestamp() - make_interval(secs => $2))
    ORDER BY retry_after, id LIMIT $1 FOR UPDATE SKIP LOCKED
), stale AS (
    SELECT id FROM celery_outbox
    WHERE retry_after IS NULL AND updated_at <= statement_timestamp() - make_interval(secs => $2)
        AND schema_version BETWEEN 1 AND 1
    ORDER BY updated_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
), picked AS (
    SELECT id FROM (SELECT id FROM fresh UNION ALL SELECT id FROM due UNION ALL SELECT id FROM stale) AS eligible
    ORDER BY id LIMIT $1
)
-- A retry_after in the past would leave the row eligible while it is in flight.
UPDATE celery_outbox SET updated_at = statement_timestamp(), retry_after = NULL
WHERE id = ANY (ARRAY(SELECT id FROM picked))
RETURNING id, task_id, task_name, args::text, kwargs::text, options::text, retries, created_at, updated_at,
    sentry_trace_id, sentry_baggage, structlog_context
