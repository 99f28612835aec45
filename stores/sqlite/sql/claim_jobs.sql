-- Whether anything is due: asked first, because workers ask often and share the write lock with all other writers.
-- Parameters: topics as JSON, NULL for any.
SELECT EXISTS (
    SELECT 1 FROM outbox_job
    WHERE state IN ('pending', 'retry', 'running')
        AND next_attempt_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        AND (?1 IS NULL OR topic IN (SELECT value FROM json_each(?1))));

-- Due jobs in the order of claiming, and why a job cannot be claimed. Parameters: how many, and topics as above.
SELECT
    seq, claim, attempts + 1 AS attempt, coalesce(max_attempts, (
        SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'job_max_attempts'), 5) AS most_attempts,
    {contents},
    CASE
        WHEN expires_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            THEN 'it had expired before it was claimed'
        WHEN attempts >= coalesce(max_attempts, (
        SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'job_max_attempts'), 5) AND state = 'running'
            THEN 'its last attempt did not end: the lease of worker ' || lease_owner || ' ran out'
        WHEN attempts >= coalesce(max_attempts, (
        SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'job_max_attempts'), 5)
            THEN coalesce(last_error, 'it has no attempt left')
    END AS refused
FROM outbox_job INDEXED BY ix_outbox_job_due
WHERE state IN ('pending', 'retry', 'running')
    AND next_attempt_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
    AND (?2 IS NULL OR topic IN (SELECT value FROM json_each(?2)))
ORDER BY next_attempt_at, seq LIMIT ?1;

-- Claims one, unless another worker claimed it since it was read. Parameters: worker, job, the number it had, lease in
-- microseconds, its new number.
UPDATE outbox_job SET
    state = 'running', claim = ?5, attempts = attempts + 1, lease_owner = ?1, leased_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),
    lease_until = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?4, next_attempt_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?4
WHERE seq = ?2 AND claim = ?3;

-- Marks one as failed instead. Parameters: job, the number it had, why, its new number.
UPDATE outbox_job SET
    state = 'failed', claim = ?4, lease_owner = NULL, leased_at = NULL, lease_until = NULL, last_error = ?3
WHERE seq = ?1 AND claim = ?2;
