-- Parameters: ids as JSON (none: all), and how many. The expiry date of an expired job is removed: otherwise it
-- would fail again immediately.
UPDATE outbox_job SET
    state = 'pending', attempts = 0, next_attempt_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),
    expires_at = CASE WHEN expires_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN expires_at END
WHERE seq IN (
    SELECT seq FROM outbox_job
    WHERE state = 'failed' AND (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1)))
    ORDER BY seq LIMIT ?2)
