-- Whether the job has no attempt left; no row if the worker does not hold it.
SELECT attempts >= coalesce(max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'job_max_attempts'), 5) FROM outbox_job
WHERE seq = :seq AND claim = :claim AND lease_owner = CAST(:worker AS BINARY) AND state = 'running'
    AND lease_until > UTC_TIMESTAMP(6)
FOR UPDATE;

UPDATE outbox_job
SET state = IF(:failed, 'failed', 'retry'), lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    next_attempt_at = IF(:failed, NULL, UTC_TIMESTAMP(6) + INTERVAL :delay MICROSECOND), last_error = :error
WHERE seq = :seq;
