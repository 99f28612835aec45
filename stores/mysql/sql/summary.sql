-- The oldest ready message is the first one of a lane: only those are read.
SELECT
    (SELECT count(*) FROM outbox_message WHERE lane < 80),
    (SELECT count(*) FROM outbox_waiting) + (SELECT count(*) FROM outbox_message WHERE lane = 80),
    (SELECT count(*) FROM outbox_waiting WHERE attempts > 0),
    (SELECT count(*) FROM outbox_dead),
    (SELECT CAST(coalesce(sum(JSON_LENGTH(sinks)), 0) AS SIGNED) FROM outbox_delivered),
    (SELECT TIMESTAMPDIFF(MICROSECOND, min(
            (SELECT m.created_at FROM outbox_message AS m WHERE m.lane = l.lane ORDER BY m.seq LIMIT 1)
        ), UTC_TIMESTAMP(6))
        FROM outbox_lane AS l),
    (SELECT TIMESTAMPDIFF(MICROSECOND, min(created_at), UTC_TIMESTAMP(6)) FROM outbox_waiting
        WHERE attempts = 0 AND (state <> 'scheduled' OR due_at <= UTC_TIMESTAMP(6)))
