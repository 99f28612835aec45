-- The audit, newest first.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at), login, who, action, filter, affected
FROM outbox_audit ORDER BY id DESC LIMIT :limit
