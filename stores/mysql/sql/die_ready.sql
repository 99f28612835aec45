-- Deliveries of ready rows become dead letters: lane, seq, sink of the row (empty), id, sink of the dead letter, reason, error,
-- whether charged, whether it blocks; texts in hexadecimal. The row is copied without being decoded: it may be
-- unreadable. An existing row is the same delivery of the same message.
INSERT INTO outbox_dead (
    lane, seq, `key`, expires_at, attempts, blocks, sink, reason, last_error, history,
    {columns})
SELECT
    m.lane, m.seq, CAST(m.`key` AS BINARY), m.expires_at,
    s.charged, s.blocks, UNHEX(s.sink), s.reason, CONVERT(UNHEX(s.error) USING utf8mb4),
    JSON_ARRAY(JSON_OBJECT(
        'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'sink', CONVERT(UNHEX(s.sink) USING utf8mb4),
        'error', CONVERT(UNHEX(s.error) USING utf8mb4))),
    {m.columns}
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    sink VARCHAR(510) PATH '$[4]', reason VARCHAR(16) PATH '$[5]', error LONGTEXT PATH '$[6]', charged INT PATH '$[7]',
    blocks INT PATH '$[8]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY)
    ON m.lane = s.lane AND m.seq = s.seq AND CAST(m.id AS BINARY) = UNHEX(s.id)
ON DUPLICATE KEY UPDATE
    attempts = VALUES(attempts), dead_at = UTC_TIMESTAMP(6), blocks = VALUES(blocks), reason = VALUES(reason),
    last_error = VALUES(last_error), history = VALUES(history)
