-- Keys with held rows that nothing holds: no row of theirs that has a time, and no dead letter that blocks, is left to let
-- them go.
SELECT DISTINCT w.lane, HEX(w.`key`), HEX(w.leg) FROM outbox_waiting AS w
WHERE w.lane IN ({lanes}) AND w.state = 'held' AND w.due_at IS NULL AND w.`key` IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS b
        WHERE b.lane = w.lane AND b.`key` = w.`key` AND b.leg IN (w.leg, '') AND b.state IN ('retry', 'held', 'down')
            AND b.due_at IS NOT NULL)
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS d
        WHERE d.blocks AND d.lane = w.lane AND d.`key` = w.`key` AND d.leg IN (w.leg, ''))
