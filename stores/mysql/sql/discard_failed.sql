-- Failed jobs; only these ids if there are any. An ended job has no next attempt, so due jobs are not read.
SELECT seq FROM outbox_job FORCE INDEX (ix_outbox_job_due)
WHERE next_attempt_at IS NULL AND completed_at IS NULL AND state = 'failed' AND (:all OR id IN (
    SELECT j.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(36) CHARACTER SET ascii PATH '$')) AS j))
ORDER BY seq LIMIT :limit FOR UPDATE SKIP LOCKED;

DELETE i
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS s
STRAIGHT_JOIN outbox_job AS i FORCE INDEX (PRIMARY) ON i.seq = s.seq;
