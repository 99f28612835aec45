-- $1 how long ago its lease ran out, in microseconds. What is due later than that cannot have run out so long ago, which is
-- said for the index. What a worker is marking or claiming at this moment is passed over.
UPDATE outbox_item AS i SET
    state = CASE WHEN i.attempts >= coalesce(i.max_attempts, outbox_item_limit()) THEN 'failed' ELSE 'retry' END,
    next_attempt_at = CASE WHEN i.attempts < coalesce(i.max_attempts, outbox_item_limit()) THEN now() END,
    lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    last_error = 'reaped: worker ' || i.lease_owner || ' did not end it'
FROM (
    SELECT seq FROM outbox_item
    WHERE state = 'running' AND next_attempt_at <= now() - $1 * interval '1 microsecond'
        AND lease_until <= now() - $1 * interval '1 microsecond'
    FOR UPDATE SKIP LOCKED
) AS stale
WHERE i.seq = stale.seq
RETURNING i.seq
