-- Rows that have to wait, or died and block: lane, key, leg in hexadecimal, seq. What was due behind them is held again.
-- A row without a leg holds up every leg of its key.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', name VARCHAR(2048) PATH '$[1]', leg VARCHAR(510) PATH '$[2]',
    seq BIGINT PATH '$[3]')) AS k
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (ix_outbox_waiting_key)
    ON w.lane = k.lane AND w.`key` = UNHEX(k.name) AND (w.leg = UNHEX(k.leg) OR k.leg = '') AND w.seq > k.seq
    AND w.due_at IS NOT NULL AND w.state IN ('retry', 'held', 'down')
SET w.due_at = NULL, w.state = 'held'
