-- $1 how old in microseconds, $2 how many. A letter that blocks its key is not old, but unsolved.
DELETE FROM outbox_dead AS d USING (
    SELECT lane, seq, leg FROM outbox_dead
    WHERE dead_at <= now() - $1 * interval '1 microsecond' AND NOT blocks
    ORDER BY dead_at LIMIT $2
) AS old
WHERE d.lane = old.lane AND d.seq = old.seq AND d.leg = old.leg AND NOT d.blocks
    AND d.dead_at <= now() - $1 * interval '1 microsecond'
RETURNING 1
