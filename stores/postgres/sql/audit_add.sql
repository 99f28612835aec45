-- $1 the row that the first batch of a command has written, $2 how many rows this one changed.
UPDATE outbox_audit SET affected = affected + $2 WHERE id = $1
