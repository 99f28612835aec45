-- Sets a pause; one that is there stays as it was.
INSERT IGNORE INTO outbox_control (kind, name, paused_by) VALUES (:kind, CAST(:name AS BINARY), :who)
