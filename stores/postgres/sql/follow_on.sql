-- $1 lanes, $2 keys, $3 sinks: keys of which a row was removed. A row without a sink blocked its key at every sink.
-- Blocked rows become due up to the first row in retry, and none while a dead letter blocks. 64 at a time: if the
-- next one fails, few must be blocked again.
WITH gone AS (
    SELECT lane, key, sink FROM unnest($1, $2, $3) AS k (lane, key, sink) WHERE sink <> ''
    UNION
    SELECT w.lane, w.key, w.sink FROM unnest($1, $2, $3) AS k (lane, key, sink)
    JOIN outbox_waiting AS w ON w.lane = k.lane AND w.key = k.key
    WHERE k.sink = ''
), open AS (
    SELECT lane, key, sink, coalesce((
        SELECT min(b.seq) FROM outbox_waiting AS b
        WHERE b.lane = gone.lane AND b.key = gone.key AND b.sink IN (gone.sink, '') AND b.state IN ('retry', 'blocked', 'deferred')
            AND b.due_at > now()
    ), 9223372036854775807) AS until
    FROM gone
    WHERE NOT EXISTS (
        SELECT 1 FROM outbox_dead AS d
        WHERE d.lane = gone.lane AND d.key = gone.key AND d.sink IN (gone.sink, '') AND d.blocks)
), next AS (
    SELECT h.lane, h.seq, h.sink, h.id FROM open CROSS JOIN LATERAL (
        SELECT w.lane, w.seq, w.sink, w.id FROM outbox_waiting AS w
        WHERE w.lane = open.lane AND w.key = open.key AND w.sink = open.sink AND w.seq < open.until
            AND w.state = 'blocked' AND w.due_at IS NULL
        ORDER BY w.seq LIMIT 64
    ) AS h
)
UPDATE outbox_waiting AS w SET due_at = now() FROM next
WHERE w.lane = next.lane AND w.seq = next.seq AND w.sink = next.sink AND w.id = next.id
RETURNING true
