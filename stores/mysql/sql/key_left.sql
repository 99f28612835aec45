-- Of these keys (lane, key, leg in hexadecimal), those of which nothing waits or blocks any more.
SELECT k.lane, k.name, k.leg
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', name VARCHAR(2048) PATH '$[1]', leg VARCHAR(510) PATH '$[2]')) AS k
WHERE NOT EXISTS (
    SELECT 1 FROM outbox_waiting AS w
    WHERE w.lane = k.lane AND w.`key` = UNHEX(k.name) AND w.leg = UNHEX(k.leg) AND w.state IN ('retry', 'held', 'down')
) AND NOT EXISTS (
    SELECT 1 FROM outbox_dead AS d
    WHERE d.blocks AND d.lane = k.lane AND d.`key` = UNHEX(k.name) AND d.leg = UNHEX(k.leg)
)
