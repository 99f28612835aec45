-- $1 worker, $2 jobs, $3 the claim's number. Released without work, so the attempt is not charged.
UPDATE outbox_job SET
    state = CASE WHEN attempts > 1 THEN 'retry' ELSE 'pending' END, attempts = attempts - 1, lease_owner = NULL,
    leased_at = NULL, lease_until = NULL, next_attempt_at = now()
WHERE seq = ANY ($2) AND claim = $3 AND lease_owner = $1 AND state = 'running' AND lease_until > clock_timestamp()
RETURNING seq
