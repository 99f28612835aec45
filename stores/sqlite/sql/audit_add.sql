-- Another batch of a command. Parameters: the row that the first one has written, affected.
UPDATE outbox_audit SET affected = affected + ?2 WHERE id = ?1
