-- Many messages, none with an idempotency key, as one JSON array of arrays: the parameters of emit.sql, the payload in
-- hexadecimal because JSON has no bytes. They get their seq in this order.
INSERT INTO outbox_message (
    id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version, idempotency_key,
    available_at, expires_at, priority, max_attempts)
SELECT
    value ->> 0, value ->> 1, unhex(value ->> 2), value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9,
    coalesce(value ->> 10, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + (value ->> 11)),
    value ->> 12, value ->> 13, value ->> 14
FROM json_each(?1)
ORDER BY json_each.key
