-- Keeps copies of confirmed waiting rows; other statements delete the rows. $1 lanes, $2 seqs, $3 ids, $4 sinks of the rows,
-- $5 the sinks that confirmed each, as a JSON array.
INSERT INTO outbox_delivered (
    lane, seq, key, expires_at, attempts, sinks, history,
    {columns})
SELECT
    w.lane, w.seq, w.key, w.expires_at,
    w.attempts, d.sinks::jsonb, nullif(w.history, '[]'),
    {w.columns}
FROM unnest($1, $2, $3, $4, $5) AS d (lane, seq, id, sink, sinks)
JOIN outbox_waiting AS w ON w.lane = d.lane AND w.seq = d.seq AND w.sink = d.sink AND w.id = d.id
