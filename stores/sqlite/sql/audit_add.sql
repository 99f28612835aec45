-- Another batch of a command. Parameters: the row that the first batch wrote, affected.
UPDATE outbox_audit SET affected = affected + ?2 WHERE id = ?1
