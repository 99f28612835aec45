-- $1 lanes, $2 seqs, $3 ids, $4 sinks, $5 states, $6 delays in microseconds, $7 whether charged, $8 errors.
-- An existing row is the same delivery of the same message: it stays as it is.
INSERT INTO outbox_waiting (
    lane, seq, key, expires_at, attempts, due_at, sink, state, last_error, history,
    {columns})
SELECT
    m.lane, m.seq, m.key, m.expires_at,
    s.charged::integer,
    CASE
        WHEN s.state <> 'blocked' THEN now() + s.delay * interval '1 microsecond'
        WHEN outbox_is_blocked(m.lane, m.seq, m.key, s.sink) THEN NULL
        ELSE now() END,
    s.sink, s.state, s.error,
    CASE WHEN s.state = 'blocked' THEN '[]'::jsonb ELSE outbox_add_history('[]', s.sink, s.error) END,
    {m.columns}
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS s (lane, seq, id, sink, state, delay, charged, error)
JOIN outbox_message AS m ON m.lane = s.lane AND m.seq = s.seq AND m.id = s.id
ON CONFLICT (lane, seq, sink, id) DO NOTHING
RETURNING due_at <= now()
