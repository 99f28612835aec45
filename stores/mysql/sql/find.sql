-- Every delivery of one message, with its attempts.
SELECT
    a.status, a.sink, a.lane, a.seq, a.attempts, a.last_error, a.detail, a.history,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.created_at) AS created_at,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.due_at) AS due_at,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.expires_at) AS expires_at,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.ended_at) AS ended_at,
    IF(OCTET_LENGTH(a.headers) <= 1048576, a.headers, NULL) AS headers, a.headers IS NOT NULL AS has_headers,
    SUBSTRING(a.payload, 1, 16777216) AS payload, OCTET_LENGTH(a.payload) AS payload_bytes,
    {a.shown}
FROM outbox_all AS a
WHERE a.id = :id
ORDER BY a.created_at, a.seq, a.sink, a.ended_at
