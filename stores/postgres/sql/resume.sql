-- $1 who, $2 kind, $3 name.
SELECT noted, affected FROM outbox_resume($1, $2, $3)
