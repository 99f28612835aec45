-- $1 lanes, $2 seqs, $3 ids, $4 sinks of the rows, $5 sinks of the dead letters, $6 reasons, $7 errors, $8 whether charged,
-- $9 whether they block. The row is copied without being decoded: it may be unreadable. A ready row has no sink: $4 is ''.
INSERT INTO outbox_dead (
    lane, seq, key, expires_at, attempts, blocks, sink, reason, last_error, history,
    {columns})
SELECT
    m.lane, m.seq, m.key, m.expires_at,
    s.charged::integer, s.blocks, s.sink, s.reason, s.error, outbox_add_history('[]', s.sink, s.error),
    {m.columns}
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) AS s (lane, seq, id, had, sink, reason, error, charged, blocks)
JOIN outbox_message AS m ON m.lane = s.lane AND m.seq = s.seq AND m.id = s.id
ON CONFLICT (lane, seq, sink, id) DO UPDATE SET
    attempts = excluded.attempts, dead_at = excluded.dead_at, blocks = excluded.blocks, reason = excluded.reason,
    last_error = excluded.last_error, history = excluded.history
