-- Parameters as in wait_ready, and $9 the attempts of each row when it was read: an attempt is charged only if the row still
-- has that many. A row with more was settled before, and the answer was lost.
UPDATE outbox_waiting AS w SET
    state = s.state,
    due_at = CASE
        WHEN s.state <> 'blocked' THEN now() + s.delay * interval '1 microsecond'
        WHEN outbox_is_blocked(w.lane, w.seq, w.key, w.sink) THEN NULL
        ELSE now() END,
    attempts = w.attempts + (s.charged AND w.attempts = s.attempts)::integer,
    last_error = coalesce(s.error, w.last_error),
    history = CASE
        WHEN (s.charged AND w.attempts = s.attempts) OR s.error <> coalesce(w.last_error, '')
            THEN outbox_add_history(w.history, w.sink, s.error)
        ELSE w.history END
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) AS s (lane, seq, id, sink, state, delay, charged, error, attempts)
WHERE w.lane = s.lane AND w.seq = s.seq AND w.sink = s.sink AND w.id = s.id
RETURNING w.due_at <= now()
