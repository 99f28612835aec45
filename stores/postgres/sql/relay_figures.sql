-- All relays, alive or not, with their last beat and the lanes that they hold; one row for each row of their figures.
SELECT r.owner, r.name, r.version, r.config, r.routes, r.until - r.lease * interval '1 microsecond',
    outbox_is_lease(r.until, r.lease), (SELECT count(*) FROM outbox_lane AS l WHERE l.owner = r.owner),
    f.sink, f.written_at, f.figures
FROM outbox_relay AS r LEFT JOIN outbox_figure AS f ON f.owner = r.owner
ORDER BY r.name, r.owner, f.sink
