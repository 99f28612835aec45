-- Of these keys (lane, key, sink in hexadecimal), those without waiting rows and without dead letters that block.
SELECT k.lane, k.name, k.sink
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', name VARCHAR(2048) PATH '$[1]', sink VARCHAR(510) PATH '$[2]')) AS k
WHERE NOT EXISTS (
    SELECT 1 FROM outbox_waiting AS w
    WHERE w.lane = k.lane AND w.`key` = UNHEX(k.name) AND w.sink = UNHEX(k.sink) AND w.state IN ('retry', 'blocked', 'deferred')
) AND NOT EXISTS (
    SELECT 1 FROM outbox_dead AS d
    WHERE d.blocks AND d.lane = k.lane AND d.`key` = UNHEX(k.name) AND d.sink = UNHEX(k.sink)
)
