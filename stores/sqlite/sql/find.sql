-- All deliveries of one message. Parameter: the spellings of its id.
SELECT
    shown.status, shown.sink, shown.lane, shown.seq, shown.attempts, shown.last_error, shown.detail, shown.created_at,
    shown.due_at, shown.expires_at, shown.ended_at, shown.history,
    CASE WHEN length(CAST(shown.headers AS BLOB)) <= 1048576 THEN shown.headers END AS headers,
    shown.headers IS NOT NULL AS has_headers,
    substr(CAST(shown.payload AS BLOB), 1, 16777216) AS payload, length(CAST(shown.payload AS BLOB)) AS payload_bytes,
    {shown.shown}
FROM outbox_all AS shown
WHERE shown.id IN (SELECT value FROM json_each(?1))
ORDER BY shown.created_at, shown.seq, shown.sink
