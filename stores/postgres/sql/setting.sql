-- $1 name.
SELECT value FROM outbox_setting WHERE name = $1
