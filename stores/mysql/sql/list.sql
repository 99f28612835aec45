-- The rows of a table that match, of those that {looked} selects.
SELECT
    a.status, a.sink, a.lane, a.seq, a.attempts, a.last_error, a.detail, NULL AS history,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.created_at) AS created_at,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.due_at) AS due_at,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.expires_at) AS expires_at,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.ended_at) AS ended_at,
    IF(OCTET_LENGTH(a.headers) <= 4096, a.headers, NULL) AS headers, a.headers IS NOT NULL AS has_headers,
    SUBSTRING(a.payload, 1, 4096) AS payload, OCTET_LENGTH(a.payload) AS payload_bytes,
    {a.shown}
FROM (
{listed}
) AS a
WHERE (:status IS NULL OR a.status = :status) AND
{of_dead}
    AND
{filter}
ORDER BY {order}, a.lane, a.sink, a.id, a.ended_at LIMIT :limit
