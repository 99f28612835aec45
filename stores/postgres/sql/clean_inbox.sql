-- $1 how many.
DELETE FROM outbox_inbox
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM outbox_inbox WHERE handled_at <= now() - outbox_inbox_window() ORDER BY handled_at LIMIT $1))
RETURNING 1
