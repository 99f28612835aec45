-- Legs of ready rows are given up: lane, seq, the leg it had (none), id, the leg it dies at, reason, error, whether
-- charged, whether it blocks; texts in hexadecimal. The row is copied as it is, without being read: it may be one that
-- cannot be. A row that is there already is the same leg of the same message.
INSERT INTO outbox_dead (
    lane, priority, max_attempts, attempts, seq, created_at, id, schema_version, blocks, available_at, expires_at, leg,
    reason, topic, `key`, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
    payload)
SELECT
    m.lane, m.priority, m.max_attempts, s.charged, m.seq, m.created_at, m.id, m.schema_version, s.blocks,
    m.available_at, m.expires_at, UNHEX(s.leg), s.reason, m.topic, CAST(m.`key` AS BINARY), m.content_type, m.headers,
    m.aggregate_type, m.aggregate_id, m.idempotency_key, CONVERT(UNHEX(s.error) USING utf8mb4),
    JSON_ARRAY(JSON_OBJECT(
        'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'leg', CONVERT(UNHEX(s.leg) USING utf8mb4),
        'error', CONVERT(UNHEX(s.error) USING utf8mb4))),
    m.payload
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    leg VARCHAR(510) PATH '$[4]', reason VARCHAR(16) PATH '$[5]', error LONGTEXT PATH '$[6]', charged INT PATH '$[7]',
    blocks INT PATH '$[8]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY)
    ON m.lane = s.lane AND m.seq = s.seq AND CAST(m.id AS BINARY) = UNHEX(s.id)
ON DUPLICATE KEY UPDATE
    attempts = VALUES(attempts), dead_at = UTC_TIMESTAMP(6), blocks = VALUES(blocks), reason = VALUES(reason),
    last_error = VALUES(last_error), history = VALUES(history)
