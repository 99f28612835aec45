-- Waiting rows by topic, sink and status, with the age of the oldest in microseconds, from when it was available. Rows in lane
-- 80 of the ready table are scheduled.
SELECT few.topic, few.sink, few.status, count(*),
    TIMESTAMPDIFF(MICROSECOND, min(greatest(few.created_at, coalesce(few.available_at, few.created_at))), UTC_TIMESTAMP(6))
FROM (
    (SELECT topic, sink, created_at, available_at, CASE
            WHEN state = 'deferred' OR state = 'scheduled' AND due_at > UTC_TIMESTAMP(6) THEN state
            WHEN state = 'blocked' AND due_at IS NULL THEN 'blocked'
            WHEN attempts = 0 THEN 'pending'
            ELSE 'retry'
        END AS status
    FROM outbox_waiting LIMIT :bound)
    UNION ALL
    (SELECT topic, '', created_at, available_at, 'scheduled' FROM outbox_message WHERE lane = 80 LIMIT :bound)
) AS few
GROUP BY few.topic, few.sink, few.status ORDER BY few.topic, few.sink, few.status
