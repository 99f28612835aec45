-- Another batch of a command whose first one has written this row.
UPDATE outbox_audit SET affected = affected + :affected WHERE id = :row
