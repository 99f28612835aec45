-- The jobs that the worker holds, locked until they are changed.
SELECT seq, claim FROM outbox_job FORCE INDEX (PRIMARY)
WHERE seq IN ({jobs}) AND lease_owner = UNHEX('{worker}') AND state = 'running' AND lease_until > UTC_TIMESTAMP(6)
ORDER BY seq FOR UPDATE;

UPDATE outbox_job
SET leased_at = UTC_TIMESTAMP(6), lease_until = UTC_TIMESTAMP(6) + INTERVAL {lease} MICROSECOND,
    next_attempt_at = UTC_TIMESTAMP(6) + INTERVAL {lease} MICROSECOND
WHERE seq IN ({jobs});
