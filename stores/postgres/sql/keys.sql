-- $1 how many. Keys with blocked rows, or with a dead letter that blocks. They wait for the dead letter, if
-- there is one, and otherwise for the first row that has a due time.
WITH blocked AS (
    SELECT lane, key, sink, count(*) AS held FROM outbox_waiting
    WHERE key IS NOT NULL AND state = 'blocked' AND due_at IS NULL
    GROUP BY lane, key, sink
    UNION ALL
    SELECT DISTINCT d.lane, d.key, d.sink, 0 FROM outbox_dead AS d
    WHERE d.key IS NOT NULL AND d.blocks AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS w
        WHERE w.lane = d.lane AND w.key = d.key AND w.sink = d.sink AND w.state = 'blocked' AND w.due_at IS NULL)
), most AS (
    SELECT lane, key, sink, held FROM blocked ORDER BY held DESC, key, sink LIMIT $1
)
SELECT m.key, m.sink, m.lane, m.held, h.id, coalesce(h.state, 'blocked'), h.due_at, h.last_error
FROM most AS m LEFT JOIN LATERAL (
    SELECT * FROM (
        (SELECT 0 AS place, d.id, 'dead' AS state, NULL::timestamptz AS due_at, d.last_error FROM outbox_dead AS d
        WHERE d.lane = m.lane AND d.key = m.key AND d.sink IN (m.sink, '') AND d.blocks
        ORDER BY d.seq LIMIT 1)
        UNION ALL
        (SELECT 1, w.id, w.state, w.due_at, w.last_error FROM outbox_waiting AS w
        WHERE w.lane = m.lane AND w.key = m.key AND w.sink IN (m.sink, '') AND w.state IN ('retry', 'blocked', 'deferred')
            AND w.due_at IS NOT NULL
        ORDER BY w.seq LIMIT 1)
    ) AS either ORDER BY place LIMIT 1
) AS h ON true
ORDER BY m.held DESC, m.key, m.sink
