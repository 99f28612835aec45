-- $1 ids, none for all, $2 how many.
DELETE FROM outbox_item AS i USING (
    SELECT seq FROM outbox_item
    WHERE state = 'failed' AND next_attempt_at IS NULL AND completed_at IS NULL
        AND (cardinality($1) = 0 OR id = ANY ($1))
    ORDER BY seq LIMIT $2
    FOR UPDATE SKIP LOCKED
) AS failed
WHERE i.seq = failed.seq
RETURNING i.seq
