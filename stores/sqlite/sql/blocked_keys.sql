-- Keys with blocked followers. Parameter: lanes.
SELECT lane, key, sink FROM outbox_waiting
WHERE key IS NOT NULL AND state IN ('retry', 'blocked', 'deferred') AND lane IN (SELECT value FROM json_each(?1))
UNION
SELECT lane, key, sink FROM outbox_dead
WHERE key IS NOT NULL AND blocks AND lane IN (SELECT value FROM json_each(?1))
