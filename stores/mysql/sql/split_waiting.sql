-- One row a leg out of waiting rows that had none. Rows as in wait_ready.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, waiting_since, created_at, id, schema_version, available_at,
    expires_at, leg, state, topic, `key`, content_type, headers, aggregate_type, aggregate_id, idempotency_key,
    last_error, history, payload)
SELECT
    w.lane, w.priority, w.max_attempts, w.attempts + s.charged, w.seq,
    IF(s.state = 'held' AND w.`key` IS NOT NULL, NULL, TIMESTAMPADD(MICROSECOND, s.delay, UTC_TIMESTAMP(6))),
    w.waiting_since, w.created_at, w.id, w.schema_version, w.available_at, w.expires_at, UNHEX(s.leg), s.state, w.topic,
    w.`key`, w.content_type, w.headers, w.aggregate_type, w.aggregate_id, w.idempotency_key,
    coalesce(CONVERT(UNHEX(s.error) USING utf8mb4), w.last_error),
    IF(s.error IS NULL OR NOT (s.charged OR CAST(coalesce(w.last_error, '') AS BINARY) <> UNHEX(s.error)), w.history,
    JSON_ARRAY_APPEND(
        IF(JSON_TYPE(w.history) <> 'ARRAY', '[]',
            IF(JSON_LENGTH(w.history) >= 20, JSON_REMOVE(w.history, '$[0]'), w.history)),
        '$', JSON_OBJECT(
            'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'leg', CONVERT(UNHEX(s.leg) USING utf8mb4),
            'error', CONVERT(UNHEX(s.error) USING utf8mb4)))),
    w.payload
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    leg VARCHAR(510) PATH '$[4]', state VARCHAR(16) PATH '$[5]', delay BIGINT PATH '$[6]', charged INT PATH '$[7]',
    error LONGTEXT PATH '$[8]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.leg = ''
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
ON DUPLICATE KEY UPDATE outbox_waiting.seq = outbox_waiting.seq
