-- $1 lanes, $2 keys, $3 legs. Returns the keys of which nothing waits or blocks any more.
SELECT k.lane, k.key, k.leg FROM unnest($1, $2, $3) AS k (lane, key, leg)
WHERE NOT EXISTS (
    SELECT 1 FROM outbox_waiting AS w
    WHERE w.lane = k.lane AND w.key = k.key AND w.leg = k.leg AND w.state IN ('retry', 'held', 'down')
) AND NOT EXISTS (
    SELECT 1 FROM outbox_dead AS d WHERE d.lane = k.lane AND d.key = k.key AND d.leg = k.leg AND d.blocks
)
