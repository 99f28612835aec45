-- Keys with blocked rows that nothing blocks any more: no row of the key has a due time, and no dead letter blocks.
-- Parameter: lanes.
SELECT DISTINCT held.lane, held.key, held.sink
FROM outbox_waiting AS held
WHERE held.state = 'blocked' AND held.due_at IS NULL AND held.key IS NOT NULL
    AND held.lane IN (SELECT value FROM json_each(?1))
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS head
        WHERE head.lane = held.lane AND head.key = held.key AND head.sink IN (held.sink, '')
            AND head.state IN ('retry', 'blocked', 'deferred') AND head.due_at IS NOT NULL)
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS dead
        WHERE dead.blocks AND dead.lane = held.lane AND dead.key = held.key AND dead.sink IN (held.sink, ''))
