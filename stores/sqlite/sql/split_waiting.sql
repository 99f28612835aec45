-- One leg of a waiting row that had not been routed has to wait; the row itself is removed afterwards.
-- Parameters: lane, seq, leg, state, due_at, charged, error.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, leg, state, last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, attempts + ?6, seq, ?5, created_at, ?3, ?4, coalesce(?7, last_error),
    CASE WHEN ?7 IS NOT NULL THEN json_insert(
        CASE WHEN json_array_length(CASE WHEN json_valid(history) THEN history ELSE '[]' END) >= 20
            THEN json_remove(CASE WHEN json_valid(history) THEN history ELSE '[]' END, '$[0]')
            ELSE CASE WHEN json_valid(history) THEN history ELSE '[]' END END,
        '$[#]', json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'leg', ?3, 'error', ?7))
    ELSE history END,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_waiting
WHERE lane = ?1 AND seq = ?2 AND leg = ''
ON CONFLICT (lane, seq, leg) DO UPDATE SET id = excluded.id WHERE id = excluded.id
