-- Marks a job that the worker holds as failed.
UPDATE outbox_job
SET state = 'failed', lease_owner = NULL, leased_at = NULL, lease_until = NULL, next_attempt_at = NULL,
    last_error = :error
WHERE seq = :seq AND claim = :claim AND lease_owner = CAST(:worker AS BINARY) AND state = 'running'
    AND lease_until > UTC_TIMESTAMP(6)
