-- Keeps copies of confirmed ready rows; other statements delete the rows. $1 lanes, $2 seqs, $3 ids, $4 the sinks that
-- confirmed each, as a JSON array.
INSERT INTO outbox_delivered (
    lane, seq, key, expires_at, sinks,
    {columns})
SELECT
    m.lane, m.seq, m.key, m.expires_at,
    d.sinks::jsonb,
    {m.columns}
FROM unnest($1, $2, $3, $4) AS d (lane, seq, id, sinks)
JOIN outbox_message AS m ON m.lane = d.lane AND m.seq = d.seq AND m.id = d.id
