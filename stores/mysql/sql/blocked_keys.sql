-- Keys whose followers have to wait.
SELECT lane, HEX(`key`), HEX(leg) FROM outbox_waiting
WHERE lane IN ({lanes}) AND `key` IS NOT NULL AND state IN ('retry', 'held', 'down')
UNION
SELECT lane, HEX(`key`), HEX(leg) FROM outbox_dead WHERE blocks AND lane IN ({lanes}) AND `key` IS NOT NULL
