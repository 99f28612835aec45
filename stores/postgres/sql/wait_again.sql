-- Parameters as in wait_ready.
UPDATE outbox_waiting AS w SET
    state = s.state,
    due_at = CASE
        WHEN s.state <> 'held' THEN now() + s.delay * interval '1 microsecond'
        WHEN outbox_is_held(w.lane, w.seq, w.key, w.leg) THEN NULL
        ELSE now() END,
    attempts = w.attempts + s.charged::integer,
    last_error = coalesce(s.error, w.last_error),
    history = CASE
        WHEN s.charged OR s.error <> coalesce(w.last_error, '') THEN outbox_add_history(w.history, w.leg, s.error)
        ELSE w.history END
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS s (lane, seq, id, leg, state, delay, charged, error)
WHERE w.lane = s.lane AND w.seq = s.seq AND w.leg = s.leg AND w.id = s.id
RETURNING w.due_at <= now()
