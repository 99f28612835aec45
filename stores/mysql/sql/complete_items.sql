-- Which of them are held, locked until they are changed.
SELECT seq, claim FROM outbox_item FORCE INDEX (PRIMARY)
WHERE seq IN ({items}) AND lease_owner = UNHEX('{worker}') AND state = 'running' AND lease_until > UTC_TIMESTAMP(6)
ORDER BY seq FOR UPDATE;

DELETE FROM outbox_item WHERE seq IN ({items});
