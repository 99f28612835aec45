-- One delivery of a waiting row that was not routed yet must wait; the row itself is removed afterwards.
-- Parameters: lane, seq, sink, id, state, due_at, charged, error. An existing row is the same delivery of the same message: it
-- stays as it is.
INSERT INTO outbox_waiting (
    lane, seq, key, expires_at, attempts, due_at, sink, state, last_error, history,
    {columns})
SELECT
    lane, seq, key, expires_at,
    attempts + ?7, ?6, ?3, ?5, coalesce(?8, last_error),
    CASE WHEN ?8 IS NOT NULL THEN json_insert(
        CASE WHEN json_array_length(CASE WHEN json_valid(history) THEN history ELSE '[]' END) >= 20
            THEN json_remove(CASE WHEN json_valid(history) THEN history ELSE '[]' END, '$[0]')
            ELSE CASE WHEN json_valid(history) THEN history ELSE '[]' END END,
        '$[#]', json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'sink', ?3, 'error', ?8))
    ELSE history END,
    {columns}
FROM outbox_waiting
WHERE lane = ?1 AND seq = ?2 AND sink = '' AND id = ?4
ON CONFLICT (lane, seq, sink, id) DO NOTHING
