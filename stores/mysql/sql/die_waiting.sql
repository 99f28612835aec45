-- Waiting rows, or legs of rows that had not been routed, are given up. Rows as in die_ready.
INSERT INTO outbox_dead (
    lane, priority, max_attempts, attempts, seq, created_at, id, schema_version, blocks, available_at, expires_at, leg,
    reason, topic, `key`, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
    payload)
SELECT
    w.lane, w.priority, w.max_attempts, w.attempts + s.charged, w.seq, w.created_at, w.id, w.schema_version, s.blocks,
    w.available_at, w.expires_at, UNHEX(s.leg), s.reason, w.topic, w.`key`, w.content_type, w.headers,
    w.aggregate_type, w.aggregate_id, w.idempotency_key, CONVERT(UNHEX(s.error) USING utf8mb4),
    JSON_ARRAY_APPEND(
        IF(JSON_TYPE(w.history) <> 'ARRAY', '[]',
            IF(JSON_LENGTH(w.history) >= 20, JSON_REMOVE(w.history, '$[0]'), w.history)),
        '$', JSON_OBJECT(
            'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'leg', CONVERT(UNHEX(s.leg) USING utf8mb4),
            'error', CONVERT(UNHEX(s.error) USING utf8mb4))),
    w.payload
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    leg VARCHAR(510) PATH '$[4]', reason VARCHAR(16) PATH '$[5]', error LONGTEXT PATH '$[6]', charged INT PATH '$[7]',
    blocks INT PATH '$[8]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.leg = UNHEX(s.had)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
ON DUPLICATE KEY UPDATE
    attempts = VALUES(attempts), dead_at = UTC_TIMESTAMP(6), blocks = VALUES(blocks), reason = VALUES(reason),
    last_error = VALUES(last_error), history = VALUES(history)
