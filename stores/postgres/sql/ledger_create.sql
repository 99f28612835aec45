CREATE TABLE IF NOT EXISTS outbox_migration (
    version integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    checksum text NOT NULL
)
