-- Makes waiting rows due and tells where they are. Parameters: those of to_hasten.sql, lane, seq, leg and id (as bytes) behind which to begin,
-- how many.
UPDATE outbox_waiting
SET due_at = min(due_at, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    attempts = CASE WHEN ?13 THEN 0 ELSE attempts END,
    last_error = CASE WHEN ?13 THEN NULL ELSE last_error END
WHERE rowid IN (
    SELECT rowid FROM outbox_waiting
    WHERE (lane, seq, leg, id) > (?15, ?16, ?17, CAST(?18 AS TEXT))
        AND
{to_hasten}
    ORDER BY lane, seq, leg, id LIMIT ?19)
RETURNING lane, seq, leg, id
