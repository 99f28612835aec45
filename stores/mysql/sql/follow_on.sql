-- Keys of which a row has gone, with held rows behind it: lane, key, leg in hexadecimal. A row without a leg held up
-- every leg of its key. None while a dead letter blocks. Also tells the first row that backs off: those behind it wait.
SELECT g.lane, HEX(g.`key`), HEX(g.leg), coalesce((
    SELECT min(b.seq) FROM outbox_waiting AS b
    WHERE b.lane = g.lane AND b.`key` = g.`key` AND b.leg IN (g.leg, '') AND b.state IN ('retry', 'held', 'down')
        AND b.due_at > UTC_TIMESTAMP(6)
), 9223372036854775807)
FROM (
    SELECT DISTINCT w.lane, w.`key`, w.leg
    FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
        lane SMALLINT PATH '$[0]', name VARCHAR(2048) PATH '$[1]', leg VARCHAR(510) PATH '$[2]')) AS k
    STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (ix_outbox_waiting_key) ON w.lane = k.lane AND w.`key` = UNHEX(k.name)
    WHERE (k.leg = '' OR w.leg = UNHEX(k.leg)) AND w.state = 'held' AND w.due_at IS NULL
) AS g
WHERE NOT EXISTS (
    SELECT 1 FROM outbox_dead AS d
    WHERE d.blocks AND d.lane = g.lane AND d.`key` = g.`key` AND d.leg IN (g.leg, ''));

-- Held rows of one of them become due. 64 at a time: should the next one fail, few have to be held again.
UPDATE outbox_waiting FORCE INDEX (ix_outbox_waiting_key) SET due_at = UTC_TIMESTAMP(6)
WHERE lane = :lane AND `key` = UNHEX(:key) AND leg = UNHEX(:leg) AND seq < :until
    AND state = 'held' AND due_at IS NULL
ORDER BY seq LIMIT 64;
