-- The broker is down: nothing is charged.
UPDATE celery_outbox
SET updated_at = statement_timestamp(), retry_after = statement_timestamp() + make_interval(secs => $2)
WHERE id = ANY ($1) AND updated_at = $3
