-- $1 owner, $2 lanes. A blocked row is an orphan if its key has no row with a due time and no dead letter that blocks:
-- nothing would ever release it. The first 64 rows of a key become due; the others follow in order.
WITH orphan AS (
    SELECT w.lane, w.seq, w.sink, w.id, row_number() OVER (PARTITION BY w.lane, w.key, w.sink ORDER BY w.seq) AS place
    FROM outbox_waiting AS w
    JOIN outbox_lane AS l ON l.lane = w.lane AND l.owner = $1
    WHERE w.lane = ANY ($2) AND w.state = 'blocked' AND w.due_at IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM outbox_waiting AS b
            WHERE b.lane = w.lane AND b.key = w.key AND b.sink IN (w.sink, '') AND b.state IN ('retry', 'blocked', 'deferred')
                AND b.due_at IS NOT NULL)
        AND NOT EXISTS (
            SELECT 1 FROM outbox_dead AS d
            WHERE d.lane = w.lane AND d.key = w.key AND d.sink IN (w.sink, '') AND d.blocks)
)
UPDATE outbox_waiting AS w SET due_at = now() FROM orphan
WHERE w.lane = orphan.lane AND w.seq = orphan.seq AND w.sink = orphan.sink AND w.id = orphan.id AND orphan.place <= 64
RETURNING w.seq
