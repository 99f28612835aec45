-- Positions of due rows. Without their contents, because rows in flight are found again at every read.
-- Parameters: a bit for each lane below 64, a bit for each lane from 64, sinks to skip.
SELECT rowid, lane, seq, sink, id
FROM outbox_waiting
WHERE due_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
    AND CASE WHEN lane < 64 THEN ?1 >> lane ELSE ?2 >> (lane - 64) END & 1
    AND sink NOT IN (SELECT value FROM json_each(?3))
ORDER BY due_at, seq;

-- The contents of one of them.
SELECT seq, lane, attempts, {contents}
FROM outbox_waiting
WHERE rowid = ?1 AND id = ?2;
