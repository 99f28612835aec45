-- Parameters as in die_ready.
INSERT INTO outbox_dead (
    lane, seq, key, expires_at, attempts, blocks, sink, reason, last_error, history,
    {columns})
SELECT
    w.lane, w.seq, w.key, w.expires_at,
    w.attempts + s.charged::integer, s.blocks, s.sink, s.reason, s.error,
    outbox_add_history(w.history, s.sink, s.error),
    {w.columns}
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) AS s (lane, seq, id, had, sink, reason, error, charged, blocks)
JOIN outbox_waiting AS w ON w.lane = s.lane AND w.seq = s.seq AND w.sink = s.had AND w.id = s.id
ON CONFLICT (lane, seq, sink, id) DO UPDATE SET
    attempts = excluded.attempts, dead_at = excluded.dead_at, blocks = excluded.blocks, reason = excluded.reason,
    last_error = excluded.last_error, history = excluded.history
