-- $1 worker, $2 job, $3 the claim's number, $4 delay in microseconds, $5 error. Returns its new state.
UPDATE outbox_job SET
    state = CASE WHEN attempts >= coalesce(max_attempts, outbox_job_limit()) THEN 'failed' ELSE 'retry' END,
    next_attempt_at = CASE
        WHEN attempts < coalesce(max_attempts, outbox_job_limit()) THEN now() + $4 * interval '1 microsecond' END,
    lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    last_error = $5
WHERE seq = $2 AND claim = $3 AND lease_owner = $1 AND state = 'running' AND lease_until > clock_timestamp()
RETURNING state = 'failed'
