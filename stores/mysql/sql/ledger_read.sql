SELECT version, checksum FROM outbox_migration ORDER BY version
