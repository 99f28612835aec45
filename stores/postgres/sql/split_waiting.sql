-- Parameters as in wait_ready. Splits a row without a sink into one row per delivery.
INSERT INTO outbox_waiting (
    lane, seq, key, expires_at, attempts, due_at, waiting_since, sink, state, last_error, history,
    {columns})
SELECT
    w.lane, w.seq, w.key, w.expires_at,
    w.attempts + s.charged::integer,
    CASE
        WHEN s.state <> 'blocked' THEN now() + s.delay * interval '1 microsecond'
        WHEN outbox_is_blocked(w.lane, w.seq, w.key, s.sink) THEN NULL
        ELSE now() END,
    w.waiting_since, s.sink, s.state, coalesce(s.error, w.last_error),
    CASE
        WHEN s.charged OR s.error <> coalesce(w.last_error, '') THEN outbox_add_history(w.history, s.sink, s.error)
        ELSE w.history END,
    {w.columns}
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS s (lane, seq, id, sink, state, delay, charged, error)
JOIN outbox_waiting AS w ON w.lane = s.lane AND w.seq = s.seq AND w.sink = '' AND w.id = s.id
ON CONFLICT (lane, seq, sink, id) DO NOTHING
RETURNING due_at <= now()
