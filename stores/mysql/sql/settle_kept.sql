-- Keeps copies of ready rows that were confirmed: lane, seq, leg (none), id, the leg that was, or an
-- empty one where all of a row were; texts in hexadecimal. Other statements take the rows away.
INSERT INTO outbox_delivered (
    lane, priority, max_attempts, seq, created_at, id, schema_version, available_at, expires_at, leg, topic, `key`,
    content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    m.lane, m.priority, m.max_attempts, m.seq, m.created_at, m.id, m.schema_version, m.available_at, m.expires_at,
    UNHEX(s.confirmed), m.topic, CAST(m.`key` AS BINARY), m.content_type, m.headers, m.aggregate_type, m.aggregate_id, m.idempotency_key,
    m.payload
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', id VARCHAR(72) PATH '$[3]',
    confirmed VARCHAR(510) PATH '$[4]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY)
    ON m.lane = s.lane AND m.seq = s.seq AND CAST(m.id AS BINARY) = UNHEX(s.id)
