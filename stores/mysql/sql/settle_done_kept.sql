-- Keeps copies of waiting rows that were confirmed: lane, seq, leg, id, and the confirmed leg; texts in
-- hexadecimal. Other statements take the rows away.
INSERT INTO outbox_delivered (
    lane, priority, max_attempts, attempts, seq, created_at, id, schema_version, available_at, expires_at, leg, topic,
    `key`, content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    w.lane, w.priority, w.max_attempts, w.attempts, w.seq, w.created_at, w.id, w.schema_version, w.available_at,
    w.expires_at, UNHEX(s.confirmed), w.topic, w.`key`, w.content_type, w.headers, w.aggregate_type, w.aggregate_id,
    w.idempotency_key, w.payload
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    confirmed VARCHAR(510) PATH '$[4]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.leg = UNHEX(s.leg)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
