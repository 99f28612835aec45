-- Completed jobs whose retention is over. $1 minimum age in microseconds, $2 how many.
DELETE FROM outbox_job
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM outbox_job WHERE completed_at <= now() - $1 * interval '1 microsecond'
    ORDER BY completed_at LIMIT $2
    FOR UPDATE SKIP LOCKED))
RETURNING 1
