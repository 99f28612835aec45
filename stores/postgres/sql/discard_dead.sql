-- $1 to $12 the filter, $13 how many, $14 by when they had died, or NULL. Returns the keys that they stood in the way of.
WITH chosen AS (
    SELECT a.lane, a.seq, a.leg, a.id FROM outbox_dead AS a
    WHERE ($2::text IS NULL OR $2 = 'dead') AND ($14::timestamptz IS NULL OR a.dead_at <= $14) AND
{filter}
    ORDER BY a.lane, a.seq, a.leg, a.id LIMIT $13
)
DELETE FROM outbox_dead AS d USING chosen AS c
WHERE d.lane = c.lane AND d.seq = c.seq AND d.leg = c.leg AND d.id = c.id
RETURNING d.lane, CASE WHEN d.blocks THEN d.key END, d.leg
