-- Lanes that no live relay holds.
SELECT l.lane FROM outbox_lane AS l
WHERE NOT EXISTS (SELECT FROM outbox_relay AS r WHERE r.owner = l.owner AND outbox_is_lease(r.until, r.lease))
ORDER BY l.lane
