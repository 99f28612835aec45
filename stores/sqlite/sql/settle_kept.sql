-- Keeps a copy of a confirmed ready row; another statement deletes the row. Parameters: seq, lane, id,
-- the sinks that confirmed it, as a JSON array.
INSERT INTO outbox_delivered (
    lane, seq, key, expires_at, sinks,
    {columns})
SELECT
    lane, seq, key, expires_at,
    ?4,
    {columns}
FROM outbox_message
WHERE seq = ?1 AND lane = ?2 AND id = ?3
