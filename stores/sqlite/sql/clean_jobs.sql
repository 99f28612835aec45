-- Completed jobs whose retention is over. Parameters: minimum age in microseconds, how many at most.
DELETE FROM outbox_job WHERE seq IN (
    SELECT seq FROM outbox_job
    WHERE state = 'completed' AND completed_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1
    ORDER BY completed_at LIMIT ?2)
