-- Sets a pause; an existing pause stays as it is. Parameters: kind, name, by whom.
INSERT INTO outbox_control (kind, name, paused_by) VALUES (?1, ?2, ?3) ON CONFLICT (kind, name) DO NOTHING
