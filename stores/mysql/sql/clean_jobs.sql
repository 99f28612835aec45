-- Completed jobs whose retention is over.
SELECT seq FROM outbox_job FORCE INDEX (ix_outbox_job_completed)
WHERE completed_at <= UTC_TIMESTAMP(6) - INTERVAL :age MICROSECOND AND state = 'completed'
ORDER BY completed_at LIMIT :limit FOR UPDATE SKIP LOCKED;

DELETE i
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS s
STRAIGHT_JOIN outbox_job AS i FORCE INDEX (PRIMARY) ON i.seq = s.seq;
