-- $1 how long ago an item was last claimed or extended, in microseconds. What a worker is marking at this moment is not
-- stale, and is passed over.
UPDATE outbox_item AS i SET
    state = CASE WHEN i.attempts >= coalesce(i.max_attempts, outbox_item_limit()) THEN 'failed' ELSE 'retry' END,
    lease_owner = NULL, leased_at = NULL, lease_until = NULL, next_attempt_at = now(),
    last_error = 'reaped: worker ' || i.lease_owner || ' did not end it'
FROM (
    SELECT seq FROM outbox_item
    WHERE state = 'running' AND state IN ('pending', 'retry', 'running')
        AND leased_at <= now() - $1 * interval '1 microsecond'
    FOR UPDATE SKIP LOCKED
) AS stale
WHERE i.seq = stale.seq
RETURNING i.seq
