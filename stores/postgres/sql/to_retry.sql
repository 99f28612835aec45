-- Rows that an operator can make due, as a condition on the rows of a: $1 to $14 the filter, $15 whether to reset attempts,
-- $16 whether to include scheduled messages. Due rows are left alone; blocked rows always wait for the head of their key.
    ($2::text IS NULL OR $2 = CASE
        WHEN a.state IN ('scheduled', 'deferred') THEN a.state
        WHEN a.attempts = 0 THEN 'pending'
        ELSE 'retry'
    END)
    AND a.state <> 'blocked' AND ($16 OR a.state <> 'scheduled')
    AND (a.due_at > now() OR ($15 AND (a.attempts > 0 OR a.last_error IS NOT NULL)))
    AND
{filter}
