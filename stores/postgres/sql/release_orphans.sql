-- $1 owner, $2 lanes. A held row is an orphan when no row of its key that has a time, and no dead letter that blocks, is
-- left to let it go. Keys follow each other in order again once the first 64 are due.
WITH orphan AS (
    SELECT w.lane, w.seq, w.leg, w.id, row_number() OVER (PARTITION BY w.lane, w.key, w.leg ORDER BY w.seq) AS place
    FROM outbox_waiting AS w
    JOIN outbox_lane AS l ON l.lane = w.lane AND l.owner = $1
    WHERE w.lane = ANY ($2) AND w.state = 'held' AND w.due_at IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM outbox_waiting AS b
            WHERE b.lane = w.lane AND b.key = w.key AND b.leg IN (w.leg, '') AND b.state IN ('retry', 'held', 'down')
                AND b.due_at IS NOT NULL)
        AND NOT EXISTS (
            SELECT 1 FROM outbox_dead AS d
            WHERE d.lane = w.lane AND d.key = w.key AND d.leg IN (w.leg, '') AND d.blocks)
)
UPDATE outbox_waiting AS w SET due_at = now() FROM orphan
WHERE w.lane = orphan.lane AND w.seq = orphan.seq AND w.leg = orphan.leg AND w.id = orphan.id AND orphan.place <= 64
RETURNING w.seq
