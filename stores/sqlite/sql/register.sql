-- Registers a relay. Parameters: owner, name, lease in microseconds, version, hash of the configuration, routes.
INSERT INTO outbox_relay (owner, name, until, lease, version, config, routes)
VALUES (?1, ?2, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?3, ?3, ?4, ?5, ?6)
ON CONFLICT (owner) DO UPDATE SET name = excluded.name, until = excluded.until, lease = excluded.lease,
    version = excluded.version, config = excluded.config, routes = excluded.routes
