-- $1 who, $2 key, $3 sink or NULL for all.
SELECT noted, affected FROM outbox_release_key($1, $2, $3)
