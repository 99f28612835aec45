-- Many messages, none with an idempotency key or a schedule, as one JSON array of arrays: the parameters of emit.sql, the
-- payload in hexadecimal because JSON has no bytes. They get their seq in this order.
INSERT INTO outbox_message (
    id, topic, payload, content_type, headers, `key`, aggregate_type, aggregate_id, schema_version, expires_at,
    priority, max_attempts)
SELECT
    m.id, m.topic, UNHEX(m.payload), m.content_type, m.headers, m.`key`, m.aggregate_type, m.aggregate_id,
    m.schema_version,
    TIMESTAMPADD(MICROSECOND, GREATEST(LEAST(m.expires_at, 253370764800000000), 0),
        TIMESTAMP'1970-01-01 00:00:00.000000'),
    m.priority, m.max_attempts
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    place FOR ORDINALITY,
    id CHAR(36) PATH '$[0]',
    topic VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[1]',
    payload LONGTEXT PATH '$[2]',
    content_type VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[3]',
    headers LONGTEXT CHARACTER SET utf8mb4 PATH '$[4]',
    `key` VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[5]',
    aggregate_type VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[6]',
    aggregate_id VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[7]',
    schema_version BIGINT PATH '$[8]',
    expires_at BIGINT PATH '$[12]',
    priority BIGINT PATH '$[13]',
    max_attempts BIGINT PATH '$[14]'
)) AS m
ORDER BY m.place
