-- Dead letters that fit the filter and had died by :until, in microseconds, or NULL, oldest first, with the keys that
-- they stand in the way of.
SELECT a.lane, a.seq, HEX(a.leg), HEX(a.id), IF(a.blocks, HEX(a.`key`), NULL) FROM outbox_dead AS a
WHERE (:status IS NULL OR :status = 'dead')
    AND (:until IS NULL
        OR a.dead_at <= TIMESTAMPADD(MICROSECOND, :until, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND
{filter}
ORDER BY a.lane, a.seq, a.leg, a.id LIMIT :limit FOR UPDATE;

DELETE d
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_dead AS d FORCE INDEX (PRIMARY)
    ON d.lane = s.lane AND d.seq = s.seq AND d.leg = UNHEX(s.leg)
    AND d.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(d.id AS BINARY) = UNHEX(s.id);
