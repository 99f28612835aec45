-- Legs of ready rows that have to wait: lane, seq, the leg it had (none), id, the leg it waits for, state, delay in
-- microseconds, whether charged, error, or NULL for one that is held; texts in hexadecimal. Whether a held one may go after all is decided when all rows of the
-- settlement are where they belong. A row that is there already is the same leg of the same message: it goes its own way.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, id, schema_version, available_at, expires_at, leg,
    state, topic, `key`, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
    payload)
SELECT
    m.lane, m.priority, m.max_attempts, s.charged, m.seq,
    IF(s.state = 'held' AND m.`key` IS NOT NULL, NULL, TIMESTAMPADD(MICROSECOND, s.delay, UTC_TIMESTAMP(6))),
    m.created_at, m.id, m.schema_version, m.available_at, m.expires_at, UNHEX(s.leg), s.state, m.topic,
    CAST(m.`key` AS BINARY), m.content_type, m.headers, m.aggregate_type, m.aggregate_id, m.idempotency_key,
    CONVERT(UNHEX(s.error) USING utf8mb4),
    IF(s.error IS NULL, JSON_ARRAY(), JSON_ARRAY(JSON_OBJECT(
        'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'leg', CONVERT(UNHEX(s.leg) USING utf8mb4),
        'error', CONVERT(UNHEX(s.error) USING utf8mb4)))),
    m.payload
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    leg VARCHAR(510) PATH '$[4]', state VARCHAR(16) PATH '$[5]', delay BIGINT PATH '$[6]', charged INT PATH '$[7]',
    error LONGTEXT PATH '$[8]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY)
    ON m.lane = s.lane AND m.seq = s.seq AND CAST(m.id AS BINARY) = UNHEX(s.id)
ON DUPLICATE KEY UPDATE outbox_waiting.seq = outbox_waiting.seq
