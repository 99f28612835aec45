-- Notes that a step was applied.
INSERT INTO outbox_migration (version, name, checksum) VALUES (:version, :name, :checksum)
