-- What operators did, the newest first.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at), who, action, filter, affected
FROM outbox_audit ORDER BY id DESC LIMIT :limit
