-- Parameters: worker, job, the claim's number, lease in microseconds.
UPDATE outbox_job SET
    leased_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER), lease_until = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?4, next_attempt_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?4
WHERE seq = ?2 AND claim = ?3 AND lease_owner = ?1 AND state = 'running'
    AND lease_until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
