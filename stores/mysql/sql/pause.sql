-- Sets a pause; an existing pause stays as it is.
INSERT IGNORE INTO outbox_control (kind, name, paused_by) VALUES (:kind, CAST(:name AS BINARY), :who)
