-- Makes the next blocked rows of a key due after a row before them was removed. Not past a row in retry, and
-- not while a dead letter blocks the key. Parameters: lane, key, sink.
UPDATE outbox_waiting SET due_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
WHERE rowid IN (
    SELECT held.rowid FROM outbox_waiting AS held
    WHERE held.lane = ?1 AND held.key = ?2 AND held.sink = ?3 AND held.state = 'blocked' AND held.due_at IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM outbox_waiting AS head
            WHERE head.lane = ?1 AND head.key = ?2 AND head.sink IN (?3, '') AND head.seq < held.seq
                AND head.state IN ('retry', 'blocked', 'deferred')
                AND head.due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    ORDER BY held.seq LIMIT 64)
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS dead
        WHERE dead.blocks AND dead.lane = ?1 AND dead.key = ?2 AND dead.sink IN (?3, ''));

-- The sinks of a key that have blocked rows: a row that is not routed yet blocks all of them. Parameters: lane, key.
SELECT DISTINCT sink FROM outbox_waiting WHERE lane = ?1 AND key = ?2 AND state = 'blocked' AND due_at IS NULL;
