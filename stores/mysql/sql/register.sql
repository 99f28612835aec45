-- Registers a relay with a lease in microseconds. A second call of the same owner renews the lease.
INSERT INTO outbox_relay (owner, name, version, config, routes, until, lease)
VALUES (:owner, :name, :version, :config, :routes, TIMESTAMPADD(MICROSECOND, :lease, UTC_TIMESTAMP(6)), :lease)
ON DUPLICATE KEY UPDATE name = VALUES(name), version = VALUES(version), config = VALUES(config), routes = VALUES(routes),
    until = VALUES(until), lease = VALUES(lease)
