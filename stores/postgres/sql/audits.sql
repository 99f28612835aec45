-- $1 how many.
SELECT at, who, action, filter::text, affected FROM outbox_audit ORDER BY id DESC LIMIT $1
