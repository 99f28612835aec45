-- Ready rows (lane, seq) that every sink confirmed. By exact numbers, never by a range: a row in between may have been
-- committed after the others were read. The join is told its order and its index, because a scan would wait for rows
-- that producers have not committed yet.
DELETE m
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY) ON m.lane = s.lane AND m.seq = s.seq
