-- $1 lanes, $2 seqs, $3 ids, $4 legs, $5 states, $6 delays in microseconds, $7 whether charged, $8 errors.
-- A row that is there already is the same leg of the same message: it goes its own way.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, id, schema_version, available_at, expires_at, leg,
    state, topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
    payload)
SELECT
    m.lane, m.priority, m.max_attempts, s.charged::integer, m.seq,
    CASE
        WHEN s.state <> 'held' THEN now() + s.delay * interval '1 microsecond'
        WHEN outbox_is_held(m.lane, m.seq, m.key, s.leg) THEN NULL
        ELSE now() END,
    m.created_at, m.id, m.schema_version, m.available_at, m.expires_at, s.leg, s.state, m.topic, m.key, m.content_type,
    m.headers, m.aggregate_type, m.aggregate_id, m.idempotency_key, s.error,
    CASE WHEN s.state = 'held' THEN '[]'::jsonb ELSE outbox_add_history('[]', s.leg, s.error) END, m.payload
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS s (lane, seq, id, leg, state, delay, charged, error)
JOIN outbox_message AS m ON m.lane = s.lane AND m.seq = s.seq AND m.id = s.id
ON CONFLICT (lane, seq, leg, id) DO NOTHING
RETURNING due_at <= now()
