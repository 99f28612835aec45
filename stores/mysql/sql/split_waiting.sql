-- Splits waiting rows without a sink into one row per delivery. Rows as in wait_ready.
INSERT INTO outbox_waiting (
    lane, seq, `key`, expires_at, attempts, due_at, waiting_since, sink, state, last_error, history,
    {columns})
SELECT
    w.lane, w.seq, w.`key`, w.expires_at,
    w.attempts + s.charged,
    IF(s.state = 'blocked' AND w.`key` IS NOT NULL, NULL, TIMESTAMPADD(MICROSECOND, s.delay, UTC_TIMESTAMP(6))),
    w.waiting_since, UNHEX(s.sink), s.state, coalesce(CONVERT(UNHEX(s.error) USING utf8mb4), w.last_error),
    IF(s.error IS NULL OR NOT (s.charged OR CAST(coalesce(w.last_error, '') AS BINARY) <> UNHEX(s.error)), w.history,
    JSON_ARRAY_APPEND(
        IF(JSON_TYPE(w.history) <> 'ARRAY', '[]',
            IF(JSON_LENGTH(w.history) >= 20, JSON_REMOVE(w.history, '$[0]'), w.history)),
        '$', JSON_OBJECT(
            'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'sink', CONVERT(UNHEX(s.sink) USING utf8mb4),
            'error', CONVERT(UNHEX(s.error) USING utf8mb4)))),
    {w.columns}
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    sink VARCHAR(510) PATH '$[4]', state VARCHAR(16) PATH '$[5]', delay BIGINT PATH '$[6]', charged INT PATH '$[7]',
    error LONGTEXT PATH '$[8]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.sink = ''
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
ON DUPLICATE KEY UPDATE outbox_waiting.seq = outbox_waiting.seq
