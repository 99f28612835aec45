-- The rows of a table that match, of those that {looked} selects. Long values are cut. $1 to $14 the filter, $15 the reason,
-- $16 and $17 died from and until, $18 how many, and from $19 what {looked} needs.
SELECT
    a.status, a.sink, a.lane, a.seq, a.attempts, a.last_error, a.detail, NULL::text AS history,
    a.created_at, a.due_at, a.expires_at, a.ended_at,
    CASE
        WHEN pg_column_size(a.headers) > 1048576 THEN NULL
        WHEN octet_length(a.headers::text) <= 4096 THEN a.headers::text END AS headers,
    a.headers IS NOT NULL AS has_headers,
    substring(a.payload FROM 1 FOR 4096) AS payload, octet_length(a.payload)::bigint AS payload_bytes,
    {a.shown}
FROM (
{listed}
) AS a
WHERE ($2::text IS NULL OR a.status = $2) AND
{of_dead}
    AND
{filter}
ORDER BY {order}, a.lane, a.sink, a.id, a.ended_at LIMIT $18
