-- One delivery of a ready row must wait. An existing row is the same delivery of the same message: it stays as it is.
-- Parameters: seq, lane, id, sink, state, due_at, attempts, error.
INSERT INTO outbox_waiting (
    lane, seq, key, expires_at, attempts, due_at, sink, state, last_error, history,
    {columns})
SELECT
    lane, seq, key, expires_at,
    ?7, ?6, ?4, ?5, ?8,
    CASE WHEN ?8 IS NULL THEN '[]'
        ELSE json_array(json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'sink', ?4, 'error', ?8)) END,
    {columns}
FROM outbox_message
WHERE seq = ?1 AND lane = ?2 AND id = ?3
ON CONFLICT (lane, seq, sink, id) DO NOTHING
