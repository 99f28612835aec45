-- A waiting row, or one leg of a row that had not been routed, is given up. It is copied as it is, readable or not.
-- Parameters: lane, seq, leg of the row, id, leg of the dead letter, reason, error, charged, blocks.
INSERT INTO outbox_dead (
    lane, priority, max_attempts, attempts, seq, created_at, blocks, leg, reason, last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, attempts + ?8, seq, created_at, ?9, ?5, ?6, ?7,
    json_insert(
        CASE WHEN json_array_length(CASE WHEN json_valid(history) THEN history ELSE '[]' END) >= 20
            THEN json_remove(CASE WHEN json_valid(history) THEN history ELSE '[]' END, '$[0]')
            ELSE CASE WHEN json_valid(history) THEN history ELSE '[]' END END,
        '$[#]', json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'leg', ?5, 'error', ?7)),
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_waiting
WHERE lane = ?1 AND seq = ?2 AND leg = ?3 AND id = ?4
ON CONFLICT (lane, seq, leg, id) DO UPDATE SET
    attempts = excluded.attempts, dead_at = excluded.dead_at, blocks = excluded.blocks, reason = excluded.reason,
    last_error = excluded.last_error, history = excluded.history
