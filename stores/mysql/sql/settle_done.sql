-- Waiting rows (lane, seq, leg in hexadecimal) whose sink confirmed them.
DELETE w
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY) ON w.lane = s.lane AND w.seq = s.seq AND w.leg = UNHEX(s.leg)
