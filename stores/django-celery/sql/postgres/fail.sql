-- Only rows that this relay still holds: another relay may have taken them over as stale.
UPDATE celery_outbox AS row
SET retries = row.retries + 1, updated_at = statement_timestamp(),
    retry_after = statement_timestamp() + make_interval(secs => failed.delay)
FROM unnest($1::bigint[], $2::float8[]) AS failed (id, delay)
WHERE row.id = failed.id AND row.updated_at = $3
