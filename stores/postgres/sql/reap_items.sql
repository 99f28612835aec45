-- $1 how long ago an item was last claimed or extended, in microseconds. What a worker is marking at this moment is not
-- stale, and is passed over.
UPDATE outbox_item AS i SET
    state = CASE WHEN i.attempts >= coalesce(i.max_attempts, outbox_item_limit()) THEN 'failed' ELSE 'retry' END,
    next_attempt_at = CASE WHEN i.attempts < coalesce(i.max_attempts, outbox_item_limit()) THEN now() END,
    lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    last_error = 'reaped: worker ' || i.lease_owner || ' did not end it'
FROM (
    SELECT seq FROM outbox_item
    WHERE state = 'running' AND next_attempt_at IS NOT NULL
        AND leased_at <= now() - $1 * interval '1 microsecond'
    FOR UPDATE SKIP LOCKED
) AS stale
WHERE i.seq = stale.seq
RETURNING i.seq
