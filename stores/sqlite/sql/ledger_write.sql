-- Notes that a step was applied. Parameters: version, name, checksum.
INSERT INTO outbox_migration (version, name, checksum) VALUES (?1, ?2, ?3)
