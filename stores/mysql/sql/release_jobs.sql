-- The jobs that the worker holds, locked until they are changed.
SELECT seq, claim FROM outbox_job FORCE INDEX (PRIMARY)
WHERE seq IN ({jobs}) AND lease_owner = UNHEX('{worker}') AND state = 'running' AND lease_until > UTC_TIMESTAMP(6)
ORDER BY seq FOR UPDATE;

-- Released without work, so the attempt is not charged.
UPDATE outbox_job
SET state = IF(attempts > 1, 'retry', 'pending'), attempts = attempts - 1, lease_owner = NULL, leased_at = NULL,
    lease_until = NULL, next_attempt_at = UTC_TIMESTAMP(6)
WHERE seq IN ({jobs});
