-- A waiting row, or one delivery of a row that was not routed yet, becomes a dead letter. It is copied without being decoded.
-- Parameters: lane, seq, sink of the row, id, sink of the dead letter, reason, error, charged, blocks.
INSERT INTO outbox_dead (
    lane, seq, key, expires_at, attempts, blocks, sink, reason, last_error, history,
    {columns})
SELECT
    lane, seq, key, expires_at,
    attempts + ?8, ?9, ?5, ?6, ?7,
    json_insert(
        CASE WHEN json_array_length(CASE WHEN json_valid(history) THEN history ELSE '[]' END) >= 20
            THEN json_remove(CASE WHEN json_valid(history) THEN history ELSE '[]' END, '$[0]')
            ELSE CASE WHEN json_valid(history) THEN history ELSE '[]' END END,
        '$[#]', json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'sink', ?5, 'error', ?7)),
    {columns}
FROM outbox_waiting
WHERE lane = ?1 AND seq = ?2 AND sink = ?3 AND id = ?4
ON CONFLICT (lane, seq, sink, id) DO UPDATE SET
    attempts = excluded.attempts, dead_at = excluded.dead_at, blocks = excluded.blocks, reason = excluded.reason,
    last_error = excluded.last_error, history = excluded.history
