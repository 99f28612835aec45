-- $1 how many.
DELETE FROM outbox_inbox AS i USING (
    SELECT consumer, message_id FROM outbox_inbox
    WHERE handled_at <= now() - outbox_inbox_window()
    ORDER BY handled_at LIMIT $1
) AS old
WHERE i.consumer = old.consumer AND i.message_id = old.message_id
RETURNING 1
