-- One delivery of a ready row becomes a dead letter. The row is copied without being decoded: it may be unreadable.
-- Parameters: seq, lane, id, sink, reason, error, attempts, blocks.
INSERT INTO outbox_dead (
    lane, seq, key, expires_at, attempts, blocks, sink, reason, last_error, history,
    {columns})
SELECT
    lane, seq, key, expires_at,
    ?7, ?8, ?4, ?5, ?6,
    json_array(json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'sink', ?4, 'error', ?6)),
    {columns}
FROM outbox_message
WHERE seq = ?1 AND lane = ?2 AND id = ?3
ON CONFLICT (lane, seq, sink, id) DO UPDATE SET
    attempts = excluded.attempts, dead_at = excluded.dead_at, blocks = excluded.blocks, reason = excluded.reason,
    last_error = excluded.last_error, history = excluded.history
