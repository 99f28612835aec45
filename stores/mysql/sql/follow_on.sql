-- Keys of which a row was removed and that have blocked rows: lane, key, sink in hexadecimal. A row without a sink blocked
-- its key at every sink. None while a dead letter blocks. Also returns the first row in retry: rows after it stay blocked.
SELECT g.lane, HEX(g.`key`), HEX(g.sink), coalesce((
    SELECT min(b.seq) FROM outbox_waiting AS b
    WHERE b.lane = g.lane AND b.`key` = g.`key` AND b.sink IN (g.sink, '') AND b.state IN ('retry', 'blocked', 'deferred')
        AND b.due_at > UTC_TIMESTAMP(6)
), 9223372036854775807)
FROM (
    SELECT DISTINCT w.lane, w.`key`, w.sink
    FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
        lane SMALLINT PATH '$[0]', name VARCHAR(2048) PATH '$[1]', sink VARCHAR(510) PATH '$[2]')) AS k
    STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (ix_outbox_waiting_key) ON w.lane = k.lane AND w.`key` = UNHEX(k.name)
    WHERE (k.sink = '' OR w.sink = UNHEX(k.sink)) AND w.state = 'blocked' AND w.due_at IS NULL
) AS g
WHERE NOT EXISTS (
    SELECT 1 FROM outbox_dead AS d
    WHERE d.blocks AND d.lane = g.lane AND d.`key` = g.`key` AND d.sink IN (g.sink, ''));

-- Blocked rows of one of these keys become due. 64 at a time: if the next one fails, few must be blocked again.
UPDATE outbox_waiting FORCE INDEX (ix_outbox_waiting_key) SET due_at = UTC_TIMESTAMP(6)
WHERE lane = :lane AND `key` = UNHEX(:key) AND sink = UNHEX(:sink) AND seq < :until
    AND state = 'blocked' AND due_at IS NULL
ORDER BY seq LIMIT 64;
