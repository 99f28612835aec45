-- Keys with held rows that nothing holds: none before or behind them is due or will be, and no dead letter blocks.
-- Parameter: lanes.
SELECT DISTINCT held.lane, held.key, held.leg
FROM outbox_waiting AS held
WHERE held.state = 'held' AND held.due_at IS NULL AND held.key IS NOT NULL
    AND held.lane IN (SELECT value FROM json_each(?1))
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS head
        WHERE head.lane = held.lane AND head.key = held.key AND head.leg IN (held.leg, '')
            AND head.state IN ('retry', 'held', 'down') AND head.due_at IS NOT NULL)
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS dead
        WHERE dead.blocks AND dead.lane = held.lane AND dead.key = held.key AND dead.leg IN (held.leg, ''))
