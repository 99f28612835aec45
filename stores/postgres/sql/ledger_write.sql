-- $1 version, $2 name, $3 checksum.
INSERT INTO outbox_migration (version, name, checksum) VALUES ($1, $2, $3)
