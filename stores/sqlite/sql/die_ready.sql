-- One leg of a ready row is given up. The row is copied as it is, readable or not.
-- Parameters: seq, lane, id, leg, reason, error, attempts, blocks.
INSERT INTO outbox_dead (
    lane, priority, max_attempts, attempts, seq, created_at, blocks, leg, reason, last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, ?7, seq, created_at, ?8, ?4, ?5, ?6,
    json_array(json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'leg', ?4, 'error', ?6)),
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_message
WHERE seq = ?1 AND lane = ?2 AND id = ?3
ON CONFLICT (lane, seq, leg, id) DO UPDATE SET
    attempts = excluded.attempts, dead_at = excluded.dead_at, blocks = excluded.blocks, reason = excluded.reason,
    last_error = excluded.last_error, history = excluded.history
