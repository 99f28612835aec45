-- What an operator can make due, as a condition on the rows of a: $1 to $12 the filter, $13 whether attempts are forgotten,
-- $14 whether scheduled messages are meant, too. What is due already is left alone; a held row waits for its turn, whoever
-- asks.
    ($2::text IS NULL OR $2 = CASE WHEN a.attempts = 0 THEN 'pending' ELSE 'retry' END)
    AND a.state <> 'held' AND ($14 OR a.state <> 'scheduled')
    AND (a.due_at > now() OR ($13 AND (a.attempts > 0 OR a.last_error IS NOT NULL)))
    AND
{filter}
