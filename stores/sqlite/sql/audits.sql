-- The audit, newest first. Parameter: how many.
SELECT at, who, action, filter, affected FROM outbox_audit ORDER BY id DESC LIMIT ?1
