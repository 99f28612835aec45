-- Whether there is anything to do: relays ask again and again. Day partitions are not looked at here, only what is
-- deleted row by row, and whether a partition has to be made or dropped. $1 retention in microseconds, or NULL.
SELECT EXISTS (SELECT 1 FROM outbox_dedup WHERE until <= now())
    OR EXISTS (SELECT 1 FROM outbox_inbox WHERE handled_at <= now() - outbox_inbox_window())
    OR ($1::bigint IS NOT NULL AND outbox_delivered_is_untidy($1 * interval '1 microsecond'))
    OR EXISTS (
        SELECT 1 FROM outbox_item
        WHERE state = 'completed' AND completed_at <= now() - $1::bigint * interval '1 microsecond')
