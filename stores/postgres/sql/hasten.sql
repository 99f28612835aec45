-- $1 to $14 as in to_hasten.sql, $15 to $18 lane, seq, leg and id behind which to begin, $19 how many. Returns how many became
-- due, how many were looked at, and where the last of those is.
WITH chosen AS (
    SELECT a.lane, a.seq, a.leg, a.id FROM outbox_waiting AS a
    WHERE (a.lane, a.seq, a.leg, a.id) > ($15, $16, $17, $18)
        AND
{to_hasten}
    ORDER BY a.lane, a.seq, a.leg, a.id LIMIT $19
), due AS (
    UPDATE outbox_waiting AS w SET
        due_at = least(w.due_at, now()),
        attempts = CASE WHEN $13 THEN 0 ELSE w.attempts END,
        last_error = CASE WHEN $13 THEN NULL ELSE w.last_error END
    FROM chosen AS c
    WHERE w.lane = c.lane AND w.seq = c.seq AND w.leg = c.leg AND w.id = c.id AND w.state <> 'held'
    RETURNING 1
)
SELECT (SELECT count(*) FROM due), (SELECT count(*) FROM chosen), lane, seq, leg, id
FROM chosen ORDER BY lane DESC, seq DESC, leg DESC, id DESC LIMIT 1
