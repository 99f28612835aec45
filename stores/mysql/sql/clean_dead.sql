-- Dead letters whose retention is over. One that blocks its key is never deleted here.
SELECT lane, seq, HEX(sink), HEX(id) FROM outbox_dead FORCE INDEX (ix_outbox_dead_at)
WHERE dead_at <= UTC_TIMESTAMP(6) - INTERVAL :age MICROSECOND AND NOT blocks
ORDER BY dead_at LIMIT :limit FOR UPDATE SKIP LOCKED;

DELETE d
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_dead AS d FORCE INDEX (PRIMARY)
    ON d.lane = s.lane AND d.seq = s.seq AND d.sink = UNHEX(s.sink)
    AND d.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(d.id AS BINARY) = UNHEX(s.id);
