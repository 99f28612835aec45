-- Keys with blocked rows, or with a dead letter that blocks; those with the most blocked rows first. They wait
-- for the dead letter, if there is one, and otherwise for the first row that has a due time. Parameter: how many.
WITH blocked AS (
    SELECT lane, key, sink, count(*) AS held FROM outbox_waiting
    WHERE key IS NOT NULL AND state = 'blocked' AND due_at IS NULL
    GROUP BY lane, key, sink
    UNION ALL
    SELECT DISTINCT dead.lane, dead.key, dead.sink, 0 FROM outbox_dead AS dead
    WHERE dead.key IS NOT NULL AND dead.blocks AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS held
        WHERE held.lane = dead.lane AND held.key = dead.key AND held.sink = dead.sink AND held.state = 'blocked'
            AND held.due_at IS NULL)
), most AS (
    SELECT lane, key, sink, held,
        (SELECT dead.rowid FROM outbox_dead AS dead
            WHERE dead.blocks AND dead.lane = blocked.lane AND dead.key = blocked.key AND dead.sink IN (blocked.sink, '')
            ORDER BY dead.seq LIMIT 1) AS dead,
        (SELECT head.rowid FROM outbox_waiting AS head
            WHERE head.lane = blocked.lane AND head.key = blocked.key AND head.sink IN (blocked.sink, '')
                AND head.state IN ('retry', 'blocked', 'deferred') AND head.due_at IS NOT NULL
            ORDER BY head.seq LIMIT 1) AS head
    FROM blocked ORDER BY held DESC, key, sink LIMIT ?1
)
SELECT most.key, most.sink, most.lane, most.held,
    CASE WHEN dead.rowid IS NULL THEN head.id ELSE dead.id END,
    CASE WHEN dead.rowid IS NULL THEN coalesce(head.state, 'blocked') ELSE 'dead' END,
    CASE WHEN dead.rowid IS NULL THEN head.due_at END,
    CASE WHEN dead.rowid IS NULL THEN head.last_error ELSE dead.last_error END
FROM most
LEFT JOIN outbox_dead AS dead ON dead.rowid = most.dead
LEFT JOIN outbox_waiting AS head ON head.rowid = most.head
ORDER BY most.held DESC, most.key, most.sink
