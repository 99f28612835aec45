-- Parameters as in wait_ready: one row a leg out of a row that had none.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, waiting_since, created_at, id, schema_version, available_at,
    expires_at, leg, state, topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key,
    last_error, history, payload)
SELECT
    w.lane, w.priority, w.max_attempts, w.attempts + s.charged::integer, w.seq,
    CASE
        WHEN s.state <> 'held' THEN now() + s.delay * interval '1 microsecond'
        WHEN outbox_is_held(w.lane, w.seq, w.key, s.leg) THEN NULL
        ELSE now() END,
    w.waiting_since, w.created_at, w.id, w.schema_version, w.available_at, w.expires_at, s.leg, s.state, w.topic, w.key,
    w.content_type, w.headers, w.aggregate_type, w.aggregate_id, w.idempotency_key, coalesce(s.error, w.last_error),
    CASE
        WHEN s.charged OR s.error <> coalesce(w.last_error, '') THEN outbox_add_history(w.history, s.leg, s.error)
        ELSE w.history END,
    w.payload
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS s (lane, seq, id, leg, state, delay, charged, error)
JOIN outbox_waiting AS w ON w.lane = s.lane AND w.seq = s.seq AND w.leg = '' AND w.id = s.id
ON CONFLICT (lane, seq, leg, id) DO NOTHING
RETURNING due_at <= now()
