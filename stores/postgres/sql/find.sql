-- $1 id. Every delivery of one message, with its attempts.
SELECT
    a.status, a.sink, a.lane, a.seq, a.attempts, a.last_error, a.detail, a.history::text AS history,
    a.created_at, a.due_at, a.expires_at, a.ended_at,
    CASE WHEN pg_column_size(a.headers) <= 1048576 THEN a.headers::text END AS headers,
    a.headers IS NOT NULL AS has_headers,
    substring(a.payload FROM 1 FOR 16777216) AS payload, octet_length(a.payload)::bigint AS payload_bytes,
    {a.shown}
FROM outbox_all AS a
WHERE a.id = $1
ORDER BY a.created_at, a.seq, a.sink, a.ended_at
