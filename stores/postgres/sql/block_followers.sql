-- $1 lanes, $2 keys, $3 sinks, $4 seqs: rows that must wait, or died and block. Due rows after them are blocked
-- again. A row without a sink blocks its key at every sink.
UPDATE outbox_waiting AS w SET due_at = NULL, state = 'blocked'
FROM unnest($1, $2, $3, $4) AS k (lane, key, sink, seq)
WHERE w.lane = k.lane AND w.key = k.key AND (w.sink = k.sink OR k.sink = '') AND w.seq > k.seq
    AND w.due_at IS NOT NULL AND w.state IN ('retry', 'blocked', 'deferred')
