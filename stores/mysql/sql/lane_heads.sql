-- The first ready message of each lane, with its age in microseconds, and whether a relay holds the lane.
SELECT m.lane, m.seq, TIMESTAMPDIFF(MICROSECOND, m.created_at, UTC_TIMESTAMP(6)),
    EXISTS (SELECT 1 FROM outbox_relay AS r WHERE r.owner = heads.owner AND {lease_is_valid})
FROM (
    SELECT l.lane, l.owner, (SELECT f.seq FROM outbox_message AS f WHERE f.lane = l.lane ORDER BY f.seq LIMIT 1) AS seq
    FROM outbox_lane AS l
) AS heads
JOIN outbox_message AS m ON m.lane = heads.lane AND m.seq = heads.seq
