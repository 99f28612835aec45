-- Dead letters that block a key at one sink, or at all sinks if that is NULL.
SELECT lane, seq, HEX(sink), HEX(id), HEX(`key`) FROM outbox_dead
WHERE blocks AND `key` = CAST(:key AS BINARY) AND (:sink IS NULL OR sink = CAST(:sink AS BINARY)) FOR UPDATE;

-- The dead letters stay but no longer block.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_dead AS d FORCE INDEX (PRIMARY)
    ON d.lane = s.lane AND d.seq = s.seq AND d.sink = UNHEX(s.sink)
    AND d.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(d.id AS BINARY) = UNHEX(s.id)
SET d.blocks = false;
