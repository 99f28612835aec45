-- Makes waiting rows due and returns their positions. Parameters: those of to_retry.sql; lane, seq, sink and id (as bytes)
-- after which to begin; how many.
UPDATE outbox_waiting
SET due_at = min(due_at, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    attempts = CASE WHEN ?18 THEN 0 ELSE attempts END,
    last_error = CASE WHEN ?18 THEN NULL ELSE last_error END
WHERE rowid IN (
    SELECT rowid FROM outbox_waiting
    WHERE (lane, seq, sink, id) > (?20, ?21, ?22, CAST(?23 AS TEXT))
        AND
{to_retry}
    ORDER BY lane, seq, sink, id LIMIT ?24)
RETURNING lane, seq, sink, id
