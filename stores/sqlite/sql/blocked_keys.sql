-- Keys whose followers have to wait. Parameter: lanes.
SELECT lane, key, leg FROM outbox_waiting
WHERE key IS NOT NULL AND state IN ('retry', 'held', 'down') AND lane IN (SELECT value FROM json_each(?1))
UNION
SELECT lane, key, leg FROM outbox_dead
WHERE key IS NOT NULL AND blocks AND lane IN (SELECT value FROM json_each(?1))
