-- One leg of a waiting row that had not been routed has to wait; the row itself is removed afterwards.
-- Parameters: lane, seq, leg, id, state, due_at, charged, error. A row that is there already is the same leg of the same
-- message: it goes its own way.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, leg, state, last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, attempts + ?7, seq, ?6, created_at, ?3, ?5, coalesce(?8, last_error),
    CASE WHEN ?8 IS NOT NULL THEN json_insert(
        CASE WHEN json_array_length(CASE WHEN json_valid(history) THEN history ELSE '[]' END) >= 20
            THEN json_remove(CASE WHEN json_valid(history) THEN history ELSE '[]' END, '$[0]')
            ELSE CASE WHEN json_valid(history) THEN history ELSE '[]' END END,
        '$[#]', json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'leg', ?3, 'error', ?8))
    ELSE history END,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_waiting
WHERE lane = ?1 AND seq = ?2 AND leg = '' AND id = ?4
ON CONFLICT (lane, seq, leg, id) DO NOTHING
