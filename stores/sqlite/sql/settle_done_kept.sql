-- Keeps a copy of a confirmed waiting row. Parameters: lane, seq, sink of the row, id, the sinks that
-- confirmed it, as a JSON array.
INSERT INTO outbox_delivered (
    lane, seq, key, expires_at, attempts, sinks, history,
    {columns})
SELECT
    lane, seq, key, expires_at,
    attempts, ?5, nullif(history, '[]'),
    {columns}
FROM outbox_waiting
WHERE lane = ?1 AND seq = ?2 AND sink = ?3 AND id = ?4
