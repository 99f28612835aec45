-- $1 to $12 the filter, $13 how many, $14 whether their attempts are forgotten. What is due already is left alone, so
-- that asking again goes on behind it; a held row waits for its turn, whoever asks.
WITH chosen AS (
    SELECT a.lane, a.seq, a.leg FROM outbox_waiting AS a
    WHERE ($2::text IS NULL OR $2 = CASE WHEN a.attempts = 0 THEN 'pending' ELSE 'retry' END)
        AND a.state <> 'held' AND (a.due_at > now() OR ($14 AND (a.attempts > 0 OR a.last_error IS NOT NULL)))
        AND
{filter}
    ORDER BY a.lane, a.seq, a.leg LIMIT $13
)
UPDATE outbox_waiting AS w SET
    due_at = least(w.due_at, now()),
    attempts = CASE WHEN $14 THEN 0 ELSE w.attempts END,
    last_error = CASE WHEN $14 THEN NULL ELSE w.last_error END
FROM chosen AS c
WHERE w.lane = c.lane AND w.seq = c.seq AND w.leg = c.leg AND w.state <> 'held'
RETURNING 1
