SELECT l.lane, l.epoch, l.owner, r.name, r.until, length(l.crashed_by) / 37, coalesce(m.ready, 0)
FROM outbox_lane AS l
LEFT JOIN outbox_relay AS r ON r.owner = l.owner
LEFT JOIN (SELECT lane, count(*) AS ready FROM outbox_message GROUP BY lane) AS m ON m.lane = l.lane
ORDER BY l.lane
