-- All relays, alive or not, with their last beat and the lanes that they hold; one row for each row of their figures.
SELECT relay.owner, relay.name, relay.version, relay.config, relay.routes, relay.until - relay.lease,
    relay.until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        AND relay.until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            + relay.lease + relay.lease / 5,
    (SELECT count(*) FROM outbox_lane AS held WHERE held.owner = relay.owner),
    figure.sink, figure.written_at, figure.figures
FROM outbox_relay AS relay LEFT JOIN outbox_figure AS figure ON figure.owner = relay.owner
ORDER BY relay.name, relay.owner, figure.sink
