-- Deliveries of ready rows that must wait: lane, seq, sink of the row (empty), id, sink of the delivery, state, delay in
-- microseconds, whether charged, error (NULL if it is blocked); texts in hexadecimal. Whether a blocked row is due after all is
-- decided when all rows of the settlement are written. An existing row is the same delivery of the same message: it stays.
INSERT INTO outbox_waiting (
    lane, seq, `key`, expires_at, attempts, due_at, sink, state, last_error, history,
    {columns})
SELECT
    m.lane, m.seq, CAST(m.`key` AS BINARY), m.expires_at,
    s.charged,
    IF(s.state = 'blocked' AND m.`key` IS NOT NULL, NULL, TIMESTAMPADD(MICROSECOND, s.delay, UTC_TIMESTAMP(6))),
    UNHEX(s.sink), s.state, CONVERT(UNHEX(s.error) USING utf8mb4),
    IF(s.error IS NULL, JSON_ARRAY(), JSON_ARRAY(JSON_OBJECT(
        'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'sink', CONVERT(UNHEX(s.sink) USING utf8mb4),
        'error', CONVERT(UNHEX(s.error) USING utf8mb4)))),
    {m.columns}
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    sink VARCHAR(510) PATH '$[4]', state VARCHAR(16) PATH '$[5]', delay BIGINT PATH '$[6]', charged INT PATH '$[7]',
    error LONGTEXT PATH '$[8]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY)
    ON m.lane = s.lane AND m.seq = s.seq AND CAST(m.id AS BINARY) = UNHEX(s.id)
ON DUPLICATE KEY UPDATE outbox_waiting.seq = outbox_waiting.seq
