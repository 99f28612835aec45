-- Parameters: worker, job, the claim's number, error.
UPDATE outbox_job SET
    state = 'failed', lease_owner = NULL, leased_at = NULL, lease_until = NULL, last_error = ?4
WHERE seq = ?2 AND claim = ?3 AND lease_owner = ?1 AND state = 'running'
    AND lease_until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
