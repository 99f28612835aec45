-- Inbox records. Parameters: minimum age in microseconds, or NULL for the retention in the settings; how many at most.
DELETE FROM outbox_inbox WHERE (consumer, message_id) IN (
    SELECT consumer, message_id FROM outbox_inbox
    WHERE handled_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        - coalesce(?1, 1000000 * coalesce(
            (SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'inbox_retention_seconds'), 2592000))
    ORDER BY handled_at LIMIT ?2)
