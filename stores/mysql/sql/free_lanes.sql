-- Lanes that no live relay holds.
SELECT l.lane FROM outbox_lane AS l
WHERE NOT EXISTS (SELECT 1 FROM outbox_relay AS r WHERE r.owner = l.owner AND {lease_is_valid})
ORDER BY l.lane
