-- $1 minimum age in microseconds, $2 how many. A dead letter that blocks its key is never deleted here.
DELETE FROM outbox_dead
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM outbox_dead WHERE dead_at <= now() - $1 * interval '1 microsecond' AND NOT blocks
    ORDER BY dead_at LIMIT $2))
    AND NOT blocks AND dead_at <= now() - $1 * interval '1 microsecond'
RETURNING 1
