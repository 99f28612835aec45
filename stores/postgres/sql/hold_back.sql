-- $1 lanes, $2 keys, $3 legs, $4 seqs: rows that have to wait, or died and block. What was due behind them is held
-- again. A row without a leg holds up every leg of its key.
UPDATE outbox_waiting AS w SET due_at = NULL, state = 'held'
FROM unnest($1, $2, $3, $4) AS k (lane, key, leg, seq)
WHERE w.lane = k.lane AND w.key = k.key AND (w.leg = k.leg OR k.leg = '') AND w.seq > k.seq
    AND w.due_at IS NOT NULL AND w.state IN ('retry', 'held', 'down')
