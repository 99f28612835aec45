-- The first ready message of each lane, with its age in microseconds, and whether a relay holds the lane. And, if there are
-- any, one row in a lane below all valid lanes and one above: a CHECK against these would be planned again for every message.
SELECT l.lane, first.seq, (extract(epoch FROM clock_timestamp() - first.created_at) * 1000000)::bigint,
    EXISTS (SELECT FROM outbox_relay AS r WHERE r.owner = l.owner AND outbox_is_lease(r.until, r.lease))
FROM outbox_lane AS l CROSS JOIN LATERAL (
    SELECT m.seq, m.created_at FROM outbox_message AS m WHERE m.lane = l.lane ORDER BY m.seq LIMIT 1
) AS first
UNION ALL
(SELECT m.lane, m.seq, (extract(epoch FROM clock_timestamp() - m.created_at) * 1000000)::bigint, false
    FROM outbox_message AS m WHERE m.lane < 0 ORDER BY m.lane, m.seq LIMIT 1)
UNION ALL
(SELECT m.lane, m.seq, (extract(epoch FROM clock_timestamp() - m.created_at) * 1000000)::bigint, false
    FROM outbox_message AS m WHERE m.lane > 79 ORDER BY m.lane DESC, m.seq DESC LIMIT 1)
