-- Released without work, so the attempt is not charged. Parameters: worker, job, the claim's number.
UPDATE outbox_job SET
    state = CASE WHEN attempts > 1 THEN 'retry' ELSE 'pending' END, attempts = attempts - 1, lease_owner = NULL,
    leased_at = NULL, lease_until = NULL, next_attempt_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
WHERE seq = ?2 AND claim = ?3 AND lease_owner = ?1 AND state = 'running'
    AND lease_until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
