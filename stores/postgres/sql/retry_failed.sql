-- $1 ids, none for all, $2 how many. One that had expired comes back without its date: otherwise it would fail again at once.
UPDATE outbox_item AS i SET
    state = 'pending', attempts = 0, next_attempt_at = now(),
    expires_at = CASE WHEN i.expires_at > now() THEN i.expires_at END
FROM (
    SELECT seq FROM outbox_item
    WHERE state = 'failed' AND next_attempt_at IS NULL AND completed_at IS NULL
        AND (cardinality($1) = 0 OR id = ANY ($1))
    ORDER BY seq LIMIT $2
    FOR UPDATE SKIP LOCKED
) AS failed
WHERE i.seq = failed.seq
RETURNING i.seq
