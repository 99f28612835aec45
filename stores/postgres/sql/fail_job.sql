-- $1 worker, $2 job, $3 the claim's number, $4 error.
UPDATE outbox_job SET
    state = 'failed', next_attempt_at = NULL, lease_owner = NULL, leased_at = NULL, lease_until = NULL, last_error = $4
WHERE seq = $2 AND claim = $3 AND lease_owner = $1 AND state = 'running' AND lease_until > clock_timestamp()
RETURNING seq
