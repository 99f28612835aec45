-- Rows that an operator can make due, as a condition on the rows of a, with the filter. reset: whether to reset attempts.
-- scheduled: whether to include scheduled messages. Due rows are left alone; blocked rows always wait for the head of their
-- key.
    :reason IS NULL AND :died_from IS NULL AND :died_until IS NULL AND (:status IS NULL OR :status = CASE
        WHEN a.state IN ('scheduled', 'deferred') THEN a.state
        WHEN a.attempts = 0 THEN 'pending'
        ELSE 'retry'
    END)
    AND a.state <> 'blocked' AND (:scheduled OR a.state <> 'scheduled')
    AND (a.due_at > UTC_TIMESTAMP(6) OR (:reset AND (a.attempts > 0 OR a.last_error IS NOT NULL)))
    AND
{filter}
