-- What was last claimed or extended so long ago, in microseconds. What a worker is marking at this moment is not stale, and
-- is passed over.
SELECT seq FROM outbox_item
WHERE state = 'running' AND leased_at <= UTC_TIMESTAMP(6) - INTERVAL :age MICROSECOND
FOR UPDATE SKIP LOCKED;

UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS s
STRAIGHT_JOIN outbox_item AS i FORCE INDEX (PRIMARY) ON i.seq = s.seq
SET i.last_error = 'reaped: its worker did not end it',
    i.state = IF(i.attempts >= coalesce(i.max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'item_max_attempts'), 5), 'failed', 'retry'),
    i.next_attempt_at = IF(i.attempts >= coalesce(i.max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'item_max_attempts'), 5), NULL, UTC_TIMESTAMP(6)),
    i.lease_owner = NULL, i.leased_at = NULL, i.lease_until = NULL;
