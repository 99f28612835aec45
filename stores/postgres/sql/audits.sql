-- $1 how many.
SELECT at, login, who, action, filter::text, affected FROM outbox_audit ORDER BY id DESC LIMIT $1
