-- The first $1 ready messages of each lane, by topic, with the age of the oldest in microseconds.
SELECT first.topic, count(*), (extract(epoch FROM clock_timestamp() - min(first.created_at)) * 1000000)::bigint
FROM outbox_lane AS l CROSS JOIN LATERAL (
    SELECT substr(m.topic, 1, 1024) AS topic, m.created_at FROM outbox_message AS m
    WHERE m.lane = l.lane ORDER BY m.seq LIMIT $1
) AS first
GROUP BY first.topic ORDER BY first.topic
