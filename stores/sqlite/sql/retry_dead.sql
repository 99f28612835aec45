-- Dead letters that match a filter and have no waiting row. Parameters: the filter, latest time of death, or NULL.
-- Followers of a dead letter that blocked still wait for it until it is settled.
SELECT rowid FROM outbox_dead AS dead
WHERE (?2 IS NULL OR ?2 = 'dead') AND (?18 IS NULL OR dead_at <= ?18) AND (?15 IS NULL OR reason = ?15)
    AND (?16 IS NULL OR dead_at >= ?16) AND (?17 IS NULL OR dead_at < ?17)
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS waiting
        WHERE waiting.lane = dead.lane AND waiting.seq = dead.seq AND waiting.sink = dead.sink
            AND waiting.id = dead.id)
    AND
{filter}
ORDER BY seq, sink, id;

-- Copies one to the waiting table, unless it has a row there. The expiry date of an expired message is removed: otherwise
-- it would die again immediately. Parameter: its rowid.
INSERT INTO outbox_waiting (
    lane, seq, key, expires_at, attempts, due_at, sink, state, last_error, history,
    {columns})
SELECT
    lane, seq, key, CASE WHEN expires_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN expires_at END,
    0, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER), sink, 'retry', last_error, history,
    {columns}
FROM outbox_dead
WHERE rowid = ?1
ON CONFLICT (lane, seq, sink, id) DO NOTHING;

-- Deletes the dead letter.
DELETE FROM outbox_dead WHERE rowid = ?1;
