-- Registers a relay. Parameters: owner, name, lease in microseconds.
INSERT INTO outbox_relay (owner, name, until, lease)
VALUES (?1, ?2, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?3, ?3)
ON CONFLICT (owner) DO UPDATE SET name = excluded.name, until = excluded.until, lease = excluded.lease
