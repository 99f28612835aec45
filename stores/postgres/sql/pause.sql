-- $1 kind, $2 name, $3 by whom. A pause that is there stays as it was.
INSERT INTO outbox_control (kind, name, paused_by) VALUES ($1, $2, $3) ON CONFLICT (kind, name) DO NOTHING
RETURNING 1
