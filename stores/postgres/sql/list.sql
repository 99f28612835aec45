-- The beginning of what is long. $1 to $12 the filter. $13 how many, $14 how many to pass over.
SELECT
    a.status, a.id, substr(a.topic, 1, 1024), a.leg, substr(a.key, 1, 1024), a.lane, a.seq, substr(a.aggregate_type, 1, 1024), substr(a.aggregate_id, 1, 1024), a.schema_version,
    substr(a.idempotency_key, 1, 1024), substr(a.content_type, 1, 1024), CASE
        WHEN pg_column_size(a.headers) > 1048576 THEN NULL
        WHEN octet_length(a.headers::text) <= 4096 THEN a.headers::text END, substring(a.payload FROM 1 FOR 4096), a.priority, a.attempts, a.max_attempts,
    a.last_error, a.detail, NULL::text, a.created_at, a.due_at, a.expires_at, a.ended_at, octet_length(a.payload)::bigint
FROM outbox_all AS a
WHERE ($2::text IS NULL OR a.status = $2) AND
{filter}
ORDER BY a.created_at, a.seq, a.leg, a.ended_at LIMIT $13 OFFSET $14
