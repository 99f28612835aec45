-- $1 worker, $2 jobs, $3 the claim's number. Used if completed jobs are kept. Returns the jobs that the worker held.
UPDATE outbox_job SET
    state = 'completed', completed_at = now(), next_attempt_at = NULL, lease_owner = NULL, leased_at = NULL,
    lease_until = NULL
WHERE seq = ANY ($2) AND claim = $3 AND lease_owner = $1 AND state = 'running' AND lease_until > clock_timestamp()
RETURNING seq
