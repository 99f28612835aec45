-- All lanes, their owners and their numbers of rows. A lease that ends too far in the future is not valid.
SELECT l.lane, l.epoch, l.owner, r.name, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', r.until), LENGTH(l.crashed_by) DIV 37,
    coalesce(m.ready, 0)
FROM outbox_lane AS l
LEFT JOIN outbox_relay AS r ON r.owner = l.owner
    AND r.until <= UTC_TIMESTAMP(6) + INTERVAL (r.lease + r.lease DIV 5) MICROSECOND
LEFT JOIN (SELECT lane, count(*) AS ready FROM outbox_message GROUP BY lane) AS m ON m.lane = l.lane
ORDER BY l.lane
