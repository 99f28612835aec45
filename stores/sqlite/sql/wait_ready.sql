-- One leg of a ready row has to wait. A row that is there already is the same leg of the same message: it goes its own way.
-- Parameters: seq, lane, id, leg, state, due_at, attempts, error.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, leg, state, last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, ?7, seq, ?6, created_at, ?4, ?5, ?8,
    CASE WHEN ?8 IS NULL THEN '[]'
        ELSE json_array(json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'leg', ?4, 'error', ?8)) END,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_message
WHERE seq = ?1 AND lane = ?2 AND id = ?3
ON CONFLICT (lane, seq, leg, id) DO NOTHING
