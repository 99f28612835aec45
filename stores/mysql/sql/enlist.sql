-- Registers a relay with a lease in microseconds. A second call of the same owner renews.
INSERT INTO outbox_relay (owner, name, until, lease)
VALUES (:owner, :name, TIMESTAMPADD(MICROSECOND, :lease, UTC_TIMESTAMP(6)), :lease)
ON DUPLICATE KEY UPDATE name = VALUES(name), until = VALUES(until), lease = VALUES(lease)
