-- The first ready message of each lane, with its age in microseconds, and whether a relay holds the lane.
SELECT l.lane, first.seq, (extract(epoch FROM clock_timestamp() - first.created_at) * 1000000)::bigint,
    EXISTS (SELECT FROM outbox_relay AS r WHERE r.owner = l.owner AND outbox_is_lease(r.until, r.lease))
FROM outbox_lane AS l CROSS JOIN LATERAL (
    SELECT m.seq, m.created_at FROM outbox_message AS m WHERE m.lane = l.lane ORDER BY m.seq LIMIT 1
) AS first
