-- Parameters: worker, job, the claim's number, delay in microseconds, error. Returns whether it has failed for good.
UPDATE outbox_job SET
    state = CASE WHEN attempts >= coalesce(max_attempts, (
        SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'job_max_attempts'), 5) THEN 'failed' ELSE 'retry' END,
    lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    next_attempt_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?4, last_error = ?5
WHERE seq = ?2 AND claim = ?3 AND lease_owner = ?1 AND state = 'running'
    AND lease_until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
RETURNING state = 'failed'
