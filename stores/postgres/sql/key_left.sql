-- $1 lanes, $2 keys, $3 sinks. Returns the keys without waiting rows and without dead letters that block.
SELECT k.lane, k.key, k.sink FROM unnest($1, $2, $3) AS k (lane, key, sink)
WHERE NOT EXISTS (
    SELECT 1 FROM outbox_waiting AS w
    WHERE w.lane = k.lane AND w.key = k.key AND w.sink = k.sink AND w.state IN ('retry', 'blocked', 'deferred')
) AND NOT EXISTS (
    SELECT 1 FROM outbox_dead AS d WHERE d.lane = k.lane AND d.key = k.key AND d.sink = k.sink AND d.blocks
)
