-- Keys with blocked rows, or with a dead letter that blocks; those with the most blocked rows first. They wait for
-- the dead letter, if there is one, and otherwise for the first row that has a due time.
WITH blocked AS (
    SELECT lane, `key`, sink, count(*) AS held FROM outbox_waiting
    WHERE `key` IS NOT NULL AND state = 'blocked' AND due_at IS NULL
    GROUP BY lane, `key`, sink
    UNION ALL
    SELECT DISTINCT d.lane, d.`key`, d.sink, 0 FROM outbox_dead AS d
    WHERE d.`key` IS NOT NULL AND d.blocks AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS w
        WHERE w.lane = d.lane AND w.`key` = d.`key` AND w.sink = d.sink AND w.state = 'blocked' AND w.due_at IS NULL)
), most AS (
    SELECT lane, `key`, sink, held FROM blocked ORDER BY held DESC, `key`, sink LIMIT :limit
), heads AS (
    SELECT m.lane, m.`key`, m.sink, m.held,
        (SELECT min(d.seq) FROM outbox_dead AS d
            WHERE d.blocks AND d.lane = m.lane AND d.`key` = m.`key` AND d.sink IN (m.sink, '')) AS dead_seq,
        (SELECT d.id FROM outbox_dead AS d
            WHERE d.blocks AND d.lane = m.lane AND d.`key` = m.`key` AND d.sink IN (m.sink, '')
            ORDER BY d.seq, d.id LIMIT 1) AS dead_id,
        (SELECT min(w.seq) FROM outbox_waiting AS w
            WHERE w.lane = m.lane AND w.`key` = m.`key` AND w.sink IN (m.sink, '') AND w.state IN ('retry', 'blocked', 'deferred')
                AND w.due_at IS NOT NULL) AS due_seq,
        (SELECT w.id FROM outbox_waiting AS w
            WHERE w.lane = m.lane AND w.`key` = m.`key` AND w.sink IN (m.sink, '') AND w.state IN ('retry', 'blocked', 'deferred')
                AND w.due_at IS NOT NULL
            ORDER BY w.seq, w.id LIMIT 1) AS due_id
    FROM most AS m
)
SELECT h.`key`, h.sink, h.lane, h.held, coalesce(d.id, w.id), CASE WHEN d.id IS NOT NULL THEN 'dead' ELSE
    coalesce(w.state, 'blocked') END, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.due_at), coalesce(d.last_error, w.last_error)
FROM heads AS h
LEFT JOIN outbox_dead AS d
    ON d.lane = h.lane AND d.seq = h.dead_seq AND d.id = h.dead_id AND d.sink IN (h.sink, '') AND d.blocks
LEFT JOIN outbox_waiting AS w
    ON h.dead_seq IS NULL AND w.lane = h.lane AND w.seq = h.due_seq AND w.id = h.due_id AND w.sink IN (h.sink, '')
    AND w.due_at IS NOT NULL
ORDER BY h.held DESC, h.`key`, h.sink
