-- The time, the approximate numbers of ready, waiting and dead rows, and for how long the oldest waiting row has been due.
-- No table is counted: up to :bound rows are read. If more are ready, their number is estimated from the first and the
-- last seq.
SELECT
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
    CASE WHEN ready < :bound THEN ready ELSE greatest(ready, coalesce((
        SELECT max((SELECT f.seq FROM outbox_message AS f WHERE f.lane = l.lane ORDER BY f.seq DESC LIMIT 1))
            - min((SELECT f.seq FROM outbox_message AS f WHERE f.lane = l.lane ORDER BY f.seq LIMIT 1)) + 1
        FROM outbox_lane AS l), 0)) END,
    (SELECT count(*) FROM (SELECT 1 FROM outbox_waiting LIMIT :bound) AS few)
        + (SELECT count(*) FROM (SELECT 1 FROM outbox_message WHERE lane = 80 LIMIT :bound) AS few),
    (SELECT count(*) FROM (SELECT 1 FROM outbox_dead LIMIT :bound) AS few),
    (SELECT TIMESTAMPDIFF(MICROSECOND, w.due_at, UTC_TIMESTAMP(6)) FROM outbox_waiting AS w
        WHERE w.due_at <= UTC_TIMESTAMP(6) ORDER BY w.due_at LIMIT 1)
FROM (SELECT count(*) AS ready FROM (SELECT 1 FROM outbox_message WHERE lane < 80 LIMIT :bound) AS few) AS counted
