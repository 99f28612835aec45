-- What an operator can make due, as a condition on the rows of a, with the filter. reset: whether attempts are forgotten;
-- scheduled: whether scheduled messages are meant, too. What is due already is left alone; a held row waits for its turn,
-- whoever asks.
    (:status IS NULL OR :status = CASE WHEN a.attempts = 0 THEN 'pending' ELSE 'retry' END)
    AND a.state <> 'held' AND (:scheduled OR a.state <> 'scheduled')
    AND (a.due_at > UTC_TIMESTAMP(6) OR (:reset AND (a.attempts > 0 OR a.last_error IS NOT NULL)))
    AND
{filter}
