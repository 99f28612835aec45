-- Inbox records of at least this age in microseconds; for NULL, those whose retention is over.
SELECT HEX(consumer), message_id FROM outbox_inbox FORCE INDEX (ix_outbox_inbox_at)
WHERE handled_at <= UTC_TIMESTAMP(6) - INTERVAL coalesce(:age, 1000000 * coalesce(
    (SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'inbox_retention_seconds'), 2592000)) MICROSECOND
ORDER BY handled_at LIMIT :limit FOR UPDATE SKIP LOCKED;

DELETE i
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (consumer VARCHAR(510) PATH '$[0]', id VARCHAR(36) PATH '$[1]')) AS s
STRAIGHT_JOIN outbox_inbox AS i FORCE INDEX (PRIMARY) ON i.consumer = UNHEX(s.consumer) AND i.message_id = s.id;
