-- Another batch of a command; its first batch wrote this row.
UPDATE outbox_audit SET affected = affected + :affected WHERE id = :row
