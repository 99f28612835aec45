-- $1 worker, $2 jobs, $3 the claim's number, $4 lease in microseconds. Returns the jobs that the worker holds.
-- An extended job is no longer in the index of due jobs, so claims need not skip it.
UPDATE outbox_job SET
    leased_at = now(), lease_until = now() + $4 * interval '1 microsecond',
    next_attempt_at = now() + $4 * interval '1 microsecond'
WHERE seq = ANY ($2) AND claim = $3 AND lease_owner = $1 AND state = 'running' AND lease_until > clock_timestamp()
RETURNING seq
