-- The oldest ready message is the first one of a lane: only those are read.
SELECT
    (SELECT count(*) FROM outbox_message),
    (SELECT count(*) FROM outbox_waiting),
    (SELECT count(*) FROM outbox_waiting WHERE attempts > 0),
    (SELECT count(*) FROM outbox_dead),
    (SELECT coalesce(sum(jsonb_array_length(sinks)), 0)::bigint FROM outbox_delivered),
    (SELECT (extract(epoch FROM now() - min(first.created_at)) * 1000000)::bigint
        FROM outbox_lane AS l CROSS JOIN LATERAL (
            SELECT m.created_at FROM outbox_message AS m WHERE m.lane = l.lane ORDER BY m.seq LIMIT 1
        ) AS first),
    (SELECT (extract(epoch FROM now() - min(created_at)) * 1000000)::bigint FROM outbox_waiting
        WHERE attempts = 0 AND (state <> 'scheduled' OR due_at <= now()))
