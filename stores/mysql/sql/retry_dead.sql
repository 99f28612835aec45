-- Dead letters that match the filter and died by :until (microseconds, or NULL). A dead letter
-- whose delivery already has a waiting row stays.
SELECT a.lane, a.seq, HEX(a.sink), HEX(a.id) FROM outbox_dead AS a
WHERE (:status IS NULL OR :status = 'dead')
    AND (:until IS NULL
        OR a.dead_at <= TIMESTAMPADD(MICROSECOND, :until, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND (:reason IS NULL OR a.reason = :reason)
    AND (:died_from IS NULL
        OR a.dead_at >= TIMESTAMPADD(MICROSECOND, :died_from, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND (:died_until IS NULL
        OR a.dead_at < TIMESTAMPADD(MICROSECOND, :died_until, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS w
        WHERE w.lane = a.lane AND w.seq = a.seq AND w.sink = a.sink AND w.id = a.id)
    AND
{filter}
ORDER BY a.lane, a.seq, a.sink, a.id LIMIT :limit FOR UPDATE;

-- Copies them to the waiting table. All rows of a key are due at the same moment: ties are read in the order of seq.
-- Followers of a dead letter that blocked still wait for it until it is settled. The expiry date of an expired message is
-- removed: otherwise it would die again immediately.
INSERT INTO outbox_waiting (
    lane, seq, `key`, expires_at, attempts, due_at, sink, state, last_error, history,
    {columns})
SELECT
    d.lane, d.seq, d.`key`, IF(d.expires_at > UTC_TIMESTAMP(6), d.expires_at, NULL),
    0, UTC_TIMESTAMP(6), d.sink, 'retry', d.last_error, d.history,
    {d.columns}
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_dead AS d FORCE INDEX (PRIMARY)
    ON d.lane = s.lane AND d.seq = s.seq AND d.sink = UNHEX(s.sink)
    AND d.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(d.id AS BINARY) = UNHEX(s.id);

-- Deletes the dead letters.
DELETE d
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_dead AS d FORCE INDEX (PRIMARY)
    ON d.lane = s.lane AND d.seq = s.seq AND d.sink = UNHEX(s.sink)
    AND d.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(d.id AS BINARY) = UNHEX(s.id);
