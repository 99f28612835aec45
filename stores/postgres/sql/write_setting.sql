-- $1 name, $2 value.
INSERT INTO outbox_setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
