-- Keys with blocked followers.
SELECT lane, HEX(`key`), HEX(sink) FROM outbox_waiting
WHERE lane IN ({lanes}) AND `key` IS NOT NULL AND state IN ('retry', 'blocked', 'deferred')
UNION
SELECT lane, HEX(`key`), HEX(sink) FROM outbox_dead WHERE blocks AND lane IN ({lanes}) AND `key` IS NOT NULL
