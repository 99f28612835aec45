-- The jobs that the worker holds, locked until they are changed.
SELECT seq, claim FROM outbox_job FORCE INDEX (PRIMARY)
WHERE seq IN ({jobs}) AND lease_owner = UNHEX('{worker}') AND state = 'running' AND lease_until > UTC_TIMESTAMP(6)
ORDER BY seq FOR UPDATE;

-- Used if completed jobs are kept.
UPDATE outbox_job
SET state = 'completed', completed_at = UTC_TIMESTAMP(6), lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    next_attempt_at = NULL
WHERE seq IN ({jobs});
