-- Makes waiting rows that fit a filter due, oldest first. What is due already is left alone, so that asking again goes
-- on behind it; a held row waits for its turn, whoever asks. Parameters: the filter, how many, whether their
-- attempts are forgotten.
UPDATE outbox_waiting
SET due_at = min(due_at, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    attempts = CASE WHEN ?14 THEN 0 ELSE attempts END,
    last_error = CASE WHEN ?14 THEN NULL ELSE last_error END
WHERE rowid IN (
    SELECT rowid FROM outbox_waiting
    WHERE (?2 IS NULL OR ?2 = CASE WHEN attempts = 0 THEN 'pending' ELSE 'retry' END)
        AND state <> 'held' AND due_at IS NOT NULL
        AND (due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            OR (?14 AND (attempts > 0 OR last_error IS NOT NULL)))
        AND
{filter}
    ORDER BY seq, leg LIMIT ?13)
