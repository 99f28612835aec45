-- Keys with blocked rows that nothing blocks any more: no row with a due time and no dead letter that blocks is left to
-- release them.
SELECT DISTINCT w.lane, HEX(w.`key`), HEX(w.sink) FROM outbox_waiting AS w
WHERE w.lane IN ({lanes}) AND w.state = 'blocked' AND w.due_at IS NULL AND w.`key` IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS b
        WHERE b.lane = w.lane AND b.`key` = w.`key` AND b.sink IN (w.sink, '') AND b.state IN ('retry', 'blocked', 'deferred')
            AND b.due_at IS NOT NULL)
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS d
        WHERE d.blocks AND d.lane = w.lane AND d.`key` = w.`key` AND d.sink IN (w.sink, ''))
