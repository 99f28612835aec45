-- Waiting rows (lane, seq, sink, id; texts in hexadecimal) whose sink confirmed them. The id is compared twice, here and
-- elsewhere: by its collation for the index, and by its bytes to be exact.
DELETE w
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.sink = UNHEX(s.sink)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
