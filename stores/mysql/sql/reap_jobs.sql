-- Jobs whose lease expired at least this many microseconds ago. A running job is due at the end of its lease. Jobs that a
-- worker is marking or claiming now are skipped.
SELECT seq FROM outbox_job FORCE INDEX (ix_outbox_job_due)
WHERE state = 'running' AND next_attempt_at <= UTC_TIMESTAMP(6) - INTERVAL :age MICROSECOND
FOR UPDATE SKIP LOCKED;

UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS s
STRAIGHT_JOIN outbox_job AS i FORCE INDEX (PRIMARY) ON i.seq = s.seq
SET i.last_error = CONCAT('reaped: worker ', CONVERT(i.lease_owner USING utf8mb4), ' did not end it'),
    i.state = IF(i.attempts >= coalesce(i.max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'job_max_attempts'), 5), 'failed', 'retry'),
    i.next_attempt_at = IF(i.attempts >= coalesce(i.max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'job_max_attempts'), 5), NULL, UTC_TIMESTAMP(6)),
    i.lease_owner = NULL, i.leased_at = NULL, i.lease_until = NULL;
