-- Up to $1 waiting rows by topic, sink and status, with the age of the oldest in microseconds, from when it was available.
SELECT few.topic, few.sink, few.status, count(*),
    (extract(epoch FROM clock_timestamp() - min(greatest(few.created_at, few.available_at))) * 1000000)::bigint
FROM (
    SELECT substr(topic, 1, 1024) AS topic, sink, created_at, available_at, CASE
            WHEN state = 'deferred' OR state = 'scheduled' AND due_at > clock_timestamp() THEN state
            WHEN state = 'blocked' AND due_at IS NULL THEN 'blocked'
            WHEN attempts = 0 THEN 'pending'
            ELSE 'retry'
        END AS status
    FROM outbox_waiting LIMIT $1
) AS few
GROUP BY few.topic, few.sink, few.status ORDER BY few.topic, few.sink, few.status
