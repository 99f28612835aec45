-- Keeps a copy of a ready row that was confirmed; another statement takes the row away. Parameters: seq, lane, id, leg.
INSERT INTO outbox_delivered (
    lane, priority, max_attempts, seq, created_at, leg,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, seq, created_at, ?4,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_message
WHERE seq = ?1 AND lane = ?2 AND id = ?3
