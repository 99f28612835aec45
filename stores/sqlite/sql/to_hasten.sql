-- What an operator can make due, as a condition: the filter, ?13 whether attempts are forgotten, ?14 whether scheduled
-- messages are meant, too. What is due already is left alone; a held row waits for its turn, whoever asks.
    (?2 IS NULL OR ?2 = CASE WHEN attempts = 0 THEN 'pending' ELSE 'retry' END)
    AND state <> 'held' AND (?14 OR state <> 'scheduled') AND due_at IS NOT NULL
    AND (due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        OR (?13 AND (attempts > 0 OR last_error IS NOT NULL)))
    AND
{filter}
