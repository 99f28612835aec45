-- Dead letters that fit the filter and had died by :until, in microseconds, or NULL. One
-- whose leg is waiting already stays where it is.
SELECT a.lane, a.seq, HEX(a.leg), HEX(a.id) FROM outbox_dead AS a
WHERE (:status IS NULL OR :status = 'dead')
    AND (:until IS NULL
        OR a.dead_at <= TIMESTAMPADD(MICROSECOND, :until, TIMESTAMP'1970-01-01 00:00:00.000000'))
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS w
        WHERE w.lane = a.lane AND w.seq = a.seq AND w.leg = a.leg AND w.id = a.id)
    AND
{filter}
ORDER BY a.lane, a.seq, a.leg, a.id LIMIT :limit FOR UPDATE;

-- They wait again. All of a key are due at the same moment: ties are read in the order of seq. Followers of a letter that
-- blocked wait for it as before, and are let go when it is settled. One that has expired comes back without its date:
-- otherwise it would die again at once.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, id, schema_version, available_at, expires_at, leg,
    state, topic, `key`, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
    payload)
SELECT
    d.lane, d.priority, d.max_attempts, 0, d.seq, UTC_TIMESTAMP(6), d.created_at, d.id, d.schema_version,
    d.available_at, IF(d.expires_at > UTC_TIMESTAMP(6), d.expires_at, NULL), d.leg, 'retry', d.topic, d.`key`, d.content_type, d.headers, d.aggregate_type,
    d.aggregate_id, d.idempotency_key, d.last_error, d.history, d.payload
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_dead AS d FORCE INDEX (PRIMARY)
    ON d.lane = s.lane AND d.seq = s.seq AND d.leg = UNHEX(s.leg)
    AND d.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(d.id AS BINARY) = UNHEX(s.id);

-- They are dead no more.
DELETE d
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_dead AS d FORCE INDEX (PRIMARY)
    ON d.lane = s.lane AND d.seq = s.seq AND d.leg = UNHEX(s.leg)
    AND d.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(d.id AS BINARY) = UNHEX(s.id);
