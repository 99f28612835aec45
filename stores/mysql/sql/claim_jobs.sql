-- Due jobs of these topics (NULL: of any) in the order of claiming, and why a job cannot be claimed. Large payloads are left out. Rows that another worker
-- is claiming now are skipped, so workers never wait for each other.
SELECT
    seq, attempts + 1 AS attempt, coalesce(max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'job_max_attempts'), 5) AS most_attempts,
    {contents but payload}, IF(OCTET_LENGTH(payload) <= :inline, payload, NULL) AS payload,
    OCTET_LENGTH(payload) AS payload_bytes,
    CASE
        WHEN expires_at <= UTC_TIMESTAMP(6) THEN 'it had expired before it was claimed'
        WHEN attempts < coalesce(max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'job_max_attempts'), 5) THEN NULL
        WHEN state = 'running' THEN 'its last attempt did not end: the lease of its worker ran out'
        ELSE coalesce(last_error, 'it has no attempt left')
    END AS refused
FROM outbox_job FORCE INDEX (ix_outbox_job_due)
WHERE next_attempt_at <= UTC_TIMESTAMP(6) AND (:topics IS NULL OR JSON_CONTAINS(:topics, JSON_QUOTE(topic)))
ORDER BY next_attempt_at, seq LIMIT :limit FOR UPDATE SKIP LOCKED;

-- Claims the locked jobs: seq, and the number of the claim.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', claim BIGINT PATH '$[1]')) AS s
STRAIGHT_JOIN outbox_job AS i FORCE INDEX (PRIMARY) ON i.seq = s.seq
SET i.state = 'running', i.claim = s.claim, i.attempts = i.attempts + 1, i.lease_owner = CAST(:worker AS BINARY),
    i.leased_at = UTC_TIMESTAMP(6), i.lease_until = UTC_TIMESTAMP(6) + INTERVAL :lease MICROSECOND,
    i.next_attempt_at = UTC_TIMESTAMP(6) + INTERVAL :lease MICROSECOND;

-- Marks locked jobs that cannot be claimed as failed.
UPDATE outbox_job
SET state = 'failed', claim = :claim, lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    next_attempt_at = NULL, last_error = :error
WHERE seq = :seq;

-- The payload of one job that was left out above.
SELECT payload FROM outbox_job WHERE seq = :seq;
