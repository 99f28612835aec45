-- As complete_jobs.sql, if completed jobs are kept.
UPDATE outbox_job SET
    state = 'completed', completed_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER), lease_owner = NULL,
    leased_at = NULL, lease_until = NULL
WHERE seq = ?2 AND claim = ?3 AND lease_owner = ?1 AND state = 'running'
    AND lease_until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
