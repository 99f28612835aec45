-- Failed jobs; only these ids if there are any. An ended job has no next attempt, so due jobs are not read.
SELECT seq FROM outbox_job FORCE INDEX (ix_outbox_job_due)
WHERE next_attempt_at IS NULL AND completed_at IS NULL AND state = 'failed' AND (:all OR id IN (
    SELECT j.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(36) CHARACTER SET ascii PATH '$')) AS j))
ORDER BY seq LIMIT :limit FOR UPDATE SKIP LOCKED;

-- The expiry date of an expired job is removed: otherwise it would fail again immediately.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS s
STRAIGHT_JOIN outbox_job AS i FORCE INDEX (PRIMARY) ON i.seq = s.seq
SET i.state = 'pending', i.attempts = 0, i.next_attempt_at = UTC_TIMESTAMP(6),
    i.expires_at = IF(i.expires_at > UTC_TIMESTAMP(6), i.expires_at, NULL);
