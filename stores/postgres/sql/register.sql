-- $1 owner, $2 name, $3 lease in microseconds, $4 version, $5 hash of the configuration, $6 routes. A second call of the same
-- owner renews the lease.
INSERT INTO outbox_relay (owner, name, until, lease, version, config, routes)
VALUES ($1, $2, clock_timestamp() + $3 * interval '1 microsecond', $3, $4, $5, $6)
ON CONFLICT (owner) DO UPDATE SET name = excluded.name, until = excluded.until, lease = excluded.lease,
    version = excluded.version, config = excluded.config, routes = excluded.routes
