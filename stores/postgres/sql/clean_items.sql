-- Completed items that were kept long enough. $1 how old in microseconds, $2 how many.
DELETE FROM outbox_item
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM outbox_item WHERE completed_at <= now() - $1 * interval '1 microsecond'
    ORDER BY completed_at LIMIT $2
    FOR UPDATE SKIP LOCKED))
RETURNING 1
