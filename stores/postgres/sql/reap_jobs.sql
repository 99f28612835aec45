-- $1 minimum time since the lease expired, in microseconds. The condition on the due time is redundant and lets the
-- server use the index. Jobs that a worker is marking or claiming now are skipped.
UPDATE outbox_job AS i SET
    state = CASE WHEN i.attempts >= coalesce(i.max_attempts, outbox_job_limit()) THEN 'failed' ELSE 'retry' END,
    next_attempt_at = CASE WHEN i.attempts < coalesce(i.max_attempts, outbox_job_limit()) THEN now() END,
    lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    last_error = 'reaped: worker ' || i.lease_owner || ' did not end it'
FROM (
    SELECT seq FROM outbox_job
    WHERE state = 'running' AND next_attempt_at <= now() - $1 * interval '1 microsecond'
        AND lease_until <= now() - $1 * interval '1 microsecond'
    FOR UPDATE SKIP LOCKED
) AS stale
WHERE i.seq = stale.seq
RETURNING i.seq
