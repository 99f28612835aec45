-- Parameters: ids as JSON, none for all, and how many. One that had expired comes back without its date: otherwise it
-- would fail again at once.
UPDATE outbox_item SET
    state = 'pending', attempts = 0, next_attempt_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),
    expires_at = CASE WHEN expires_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN expires_at END
WHERE seq IN (
    SELECT seq FROM outbox_item
    WHERE state = 'failed' AND (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1)))
    ORDER BY seq LIMIT ?2)
