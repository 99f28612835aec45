-- Ready rows that every sink confirmed: lane, seq, sink (empty), id; texts in hexadecimal. By exact numbers, never by a
-- range: a row in between may have been committed after the others were read. By the bytes of the id, too: after a
-- failover another message may have the number. Join order and index are forced, because a scan would wait for rows
-- that producers have not committed yet.
DELETE m
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY)
    ON m.lane = s.lane AND m.seq = s.seq AND CAST(m.id AS BINARY) = UNHEX(s.id)
