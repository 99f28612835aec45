-- Lets the next held rows of a key go, now that something before them is gone. Not past a row that is backing off, and
-- not while a dead letter blocks the key. Parameters: lane, key, leg.
UPDATE outbox_waiting SET due_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
WHERE rowid IN (
    SELECT held.rowid FROM outbox_waiting AS held
    WHERE held.lane = ?1 AND held.key = ?2 AND held.leg = ?3 AND held.state = 'held' AND held.due_at IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM outbox_waiting AS head
            WHERE head.lane = ?1 AND head.key = ?2 AND head.leg IN (?3, '') AND head.seq < held.seq
                AND head.state IN ('retry', 'held', 'down')
                AND head.due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    ORDER BY held.seq LIMIT 64)
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS dead
        WHERE dead.blocks AND dead.lane = ?1 AND dead.key = ?2 AND dead.leg IN (?3, ''));

-- The legs of a key that have held rows: a row that had not been routed stood before them all. Parameters: lane, key.
SELECT DISTINCT leg FROM outbox_waiting WHERE lane = ?1 AND key = ?2 AND state = 'held' AND due_at IS NULL;
