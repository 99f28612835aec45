-- The table of applied steps.
CREATE TABLE IF NOT EXISTS outbox_migration (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    checksum TEXT NOT NULL
) STRICT
