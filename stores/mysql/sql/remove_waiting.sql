-- Rows (lane, seq, leg, id; texts in hexadecimal) that have been moved elsewhere.
DELETE w
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.leg = UNHEX(s.leg)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
