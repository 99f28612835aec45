-- $1 lanes, $2 keys, $3 legs: keys of which a row has gone. A row without a leg held up every leg of its key.
-- Held rows become due up to the first one that backs off, and none while a dead letter blocks. 64 at a time: should the
-- next one fail, few have to be held again.
WITH gone AS (
    SELECT lane, key, leg FROM unnest($1, $2, $3) AS k (lane, key, leg) WHERE leg <> ''
    UNION
    SELECT w.lane, w.key, w.leg FROM unnest($1, $2, $3) AS k (lane, key, leg)
    JOIN outbox_waiting AS w ON w.lane = k.lane AND w.key = k.key
    WHERE k.leg = ''
), open AS (
    SELECT lane, key, leg, coalesce((
        SELECT min(b.seq) FROM outbox_waiting AS b
        WHERE b.lane = gone.lane AND b.key = gone.key AND b.leg IN (gone.leg, '') AND b.state IN ('retry', 'held', 'down')
            AND b.due_at > now()
    ), 9223372036854775807) AS until
    FROM gone
    WHERE NOT EXISTS (
        SELECT 1 FROM outbox_dead AS d
        WHERE d.lane = gone.lane AND d.key = gone.key AND d.leg IN (gone.leg, '') AND d.blocks)
), next AS (
    SELECT h.lane, h.seq, h.leg, h.id FROM open CROSS JOIN LATERAL (
        SELECT w.lane, w.seq, w.leg, w.id FROM outbox_waiting AS w
        WHERE w.lane = open.lane AND w.key = open.key AND w.leg = open.leg AND w.seq < open.until
            AND w.state = 'held' AND w.due_at IS NULL
        ORDER BY w.seq LIMIT 64
    ) AS h
)
UPDATE outbox_waiting AS w SET due_at = now() FROM next
WHERE w.lane = next.lane AND w.seq = next.seq AND w.leg = next.leg AND w.id = next.id
RETURNING true
