-- Parameters as in die_ready.
INSERT INTO outbox_dead (
    lane, priority, max_attempts, attempts, seq, created_at, id, schema_version, blocks, available_at, expires_at, leg,
    reason, topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
    payload)
SELECT
    w.lane, w.priority, w.max_attempts, w.attempts + s.charged::integer, w.seq, w.created_at, w.id, w.schema_version,
    s.blocks, w.available_at, w.expires_at, s.leg, s.reason, w.topic, w.key, w.content_type, w.headers,
    w.aggregate_type, w.aggregate_id, w.idempotency_key, s.error, outbox_add_history(w.history, s.leg, s.error),
    w.payload
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) AS s (lane, seq, id, had, leg, reason, error, charged, blocks)
JOIN outbox_waiting AS w ON w.lane = s.lane AND w.seq = s.seq AND w.leg = s.had AND w.id = s.id
ON CONFLICT (lane, seq, leg, id) DO UPDATE SET
    attempts = excluded.attempts, dead_at = excluded.dead_at, blocks = excluded.blocks, reason = excluded.reason,
    last_error = excluded.last_error, history = excluded.history
