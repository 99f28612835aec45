-- Rows that must wait, or died and block: lane, key, sink in hexadecimal, seq. Due rows after them are blocked again.
-- A row without a sink blocks its key at every sink.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', name VARCHAR(2048) PATH '$[1]', sink VARCHAR(510) PATH '$[2]',
    seq BIGINT PATH '$[3]')) AS k
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (ix_outbox_waiting_key)
    ON w.lane = k.lane AND w.`key` = UNHEX(k.name) AND (w.sink = UNHEX(k.sink) OR k.sink = '') AND w.seq > k.seq
    AND w.due_at IS NOT NULL AND w.state IN ('retry', 'blocked', 'deferred')
SET w.due_at = NULL, w.state = 'blocked'
