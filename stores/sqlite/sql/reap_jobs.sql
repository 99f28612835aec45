-- Parameters: minimum time since the lease expired, in microseconds. A running job is due at the end of its lease.
UPDATE outbox_job SET
    state = CASE WHEN attempts >= coalesce(max_attempts, (
        SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'job_max_attempts'), 5) THEN 'failed' ELSE 'retry' END,
    last_error = 'reaped: worker ' || lease_owner || ' did not end it',
    lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    next_attempt_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
WHERE state IN ('pending', 'retry', 'running') AND state = 'running'
    AND next_attempt_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1
