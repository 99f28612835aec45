-- The broker is down, or the task is not due: no attempt is charged.
UPDATE celery_outbox AS row
SET updated_at = statement_timestamp(), retry_after = statement_timestamp() + make_interval(secs => deferred.delay)
FROM unnest($1::bigint[], $2::float8[]) AS deferred (id, delay)
WHERE row.id = deferred.id AND row.updated_at = $3
