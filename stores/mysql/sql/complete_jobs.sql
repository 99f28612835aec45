-- The jobs that the worker holds, locked until they are changed.
SELECT seq, claim FROM outbox_job FORCE INDEX (PRIMARY)
WHERE seq IN ({jobs}) AND lease_owner = UNHEX('{worker}') AND state = 'running' AND lease_until > UTC_TIMESTAMP(6)
ORDER BY seq FOR UPDATE;

DELETE FROM outbox_job WHERE seq IN ({jobs});
