-- Keeps a copy of a waiting row that was confirmed. Parameters: lane, seq, leg of the row, id, leg of the copy.
INSERT INTO outbox_delivered (
    lane, priority, max_attempts, attempts, seq, created_at, leg,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, attempts, seq, created_at, ?5,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_waiting
WHERE lane = ?1 AND seq = ?2 AND leg = ?3 AND id = ?4
