-- $1 minimum age in microseconds, or NULL for the retention in the settings, $2 how many.
DELETE FROM outbox_inbox
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM outbox_inbox
    WHERE handled_at <= now() - coalesce($1::bigint * interval '1 microsecond', outbox_inbox_retention())
    ORDER BY handled_at LIMIT $2))
RETURNING 1
