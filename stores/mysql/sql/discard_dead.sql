-- Dead letters that match the filter and died by :until (microseconds, or NULL), oldest first, with the keys that
-- they block.
SELECT a.lane, a.seq, HEX(a.sink), HEX(a.id), IF(a.blocks, HEX(a.`key`), NULL) FROM outbox_dead AS a
WHERE (:status IS NULL OR :status = 'dead')
    AND (:until IS NULL
        OR a.dead_at <= TIMESTAMPADD(MICROSECOND, :until, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND (:reason IS NULL OR a.reason = :reason)
    AND (:died_from IS NULL
        OR a.dead_at >= TIMESTAMPADD(MICROSECOND, :died_from, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND (:died_until IS NULL
        OR a.dead_at < TIMESTAMPADD(MICROSECOND, :died_until, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND
{filter}
ORDER BY a.lane, a.seq, a.sink, a.id LIMIT :limit FOR UPDATE;

DELETE d
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_dead AS d FORCE INDEX (PRIMARY)
    ON d.lane = s.lane AND d.seq = s.seq AND d.sink = UNHEX(s.sink)
    AND d.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(d.id AS BINARY) = UNHEX(s.id);
