-- One leg of a ready row has to wait. A row in that place with another id can only come from a seq inserted by hand:
-- then nothing is inserted, which the caller sees. Parameters: seq, lane, leg, state, due_at, attempts, error.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, leg, state, last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, ?6, seq, ?5, created_at, ?3, ?4, ?7,
    CASE WHEN ?7 IS NULL THEN '[]'
        ELSE json_array(json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'leg', ?3, 'error', ?7)) END,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_message
WHERE seq = ?1 AND lane = ?2
ON CONFLICT (lane, seq, leg) DO UPDATE SET id = excluded.id WHERE id = excluded.id
