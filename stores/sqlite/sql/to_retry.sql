-- Rows that an operator can make due, as a condition: the filter, ?18 whether to reset attempts, ?19 whether to include
-- scheduled messages. Due rows are left alone; blocked rows always wait for the head of their key.
    ?15 IS NULL AND ?16 IS NULL AND ?17 IS NULL AND (?2 IS NULL OR ?2 = CASE
        WHEN state IN ('scheduled', 'deferred') THEN state
        WHEN attempts = 0 THEN 'pending'
        ELSE 'retry'
    END)
    AND state <> 'blocked' AND (?19 OR state <> 'scheduled') AND due_at IS NOT NULL
    AND (due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        OR (?18 AND (attempts > 0 OR last_error IS NOT NULL)))
    AND
{filter}
