-- One leg of a ready row is given up. The row is copied as it is, readable or not.
-- Parameters: seq, lane, leg, reason, error, attempts, blocks.
INSERT INTO outbox_dead (
    lane, priority, max_attempts, attempts, seq, created_at, blocks, leg, reason, last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, ?6, seq, created_at, ?7, ?3, ?4, ?5,
    json_array(json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'leg', ?3, 'error', ?5)),
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_message
WHERE seq = ?1 AND lane = ?2
