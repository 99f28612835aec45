-- $1 who, $2 kind, $3 name.
SELECT noted, affected FROM outbox_pause($1, $2, $3)
