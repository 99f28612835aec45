-- Dead letters that block a key, at one leg or, if that is NULL, at all.
SELECT lane, seq, HEX(leg), HEX(id), HEX(`key`) FROM outbox_dead
WHERE blocks AND `key` = CAST(:key AS BINARY) AND (:leg IS NULL OR leg = CAST(:leg AS BINARY)) FOR UPDATE;

-- They stay, and stand in nobody's way any more.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_dead AS d FORCE INDEX (PRIMARY)
    ON d.lane = s.lane AND d.seq = s.seq AND d.leg = UNHEX(s.leg)
    AND d.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(d.id AS BINARY) = UNHEX(s.id)
SET d.blocks = false;
