-- Waiting rows, or deliveries of rows that were not routed yet, become dead letters. Rows as in die_ready.
INSERT INTO outbox_dead (
    lane, seq, `key`, expires_at, attempts, blocks, sink, reason, last_error, history,
    {columns})
SELECT
    w.lane, w.seq, w.`key`, w.expires_at,
    w.attempts + s.charged, s.blocks, UNHEX(s.sink), s.reason, CONVERT(UNHEX(s.error) USING utf8mb4),
    JSON_ARRAY_APPEND(
        IF(JSON_TYPE(w.history) <> 'ARRAY', '[]',
            IF(JSON_LENGTH(w.history) >= 20, JSON_REMOVE(w.history, '$[0]'), w.history)),
        '$', JSON_OBJECT(
            'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'sink', CONVERT(UNHEX(s.sink) USING utf8mb4),
            'error', CONVERT(UNHEX(s.error) USING utf8mb4))),
    {w.columns}
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    sink VARCHAR(510) PATH '$[4]', reason VARCHAR(16) PATH '$[5]', error LONGTEXT PATH '$[6]', charged INT PATH '$[7]',
    blocks INT PATH '$[8]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.sink = UNHEX(s.had)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
ON DUPLICATE KEY UPDATE
    attempts = VALUES(attempts), dead_at = UTC_TIMESTAMP(6), blocks = VALUES(blocks), reason = VALUES(reason),
    last_error = VALUES(last_error), history = VALUES(history)
