-- Whether there is anything to do: relays ask again and again. Day partitions are not looked at here, only what is
-- deleted row by row, and whether a partition has to be made or dropped. $1 and $2 how long delivered messages and dead
-- letters are kept, in microseconds, or NULL.
-- The oldest are asked for, which an index answers; asked whether there is an old one, the planner may look for it in the
-- whole table.
SELECT coalesce((SELECT min(until) FROM outbox_dedup) <= now(), false)
    OR coalesce((SELECT min(handled_at) FROM outbox_inbox) <= now() - outbox_inbox_window(), false)
    OR ($1::bigint IS NOT NULL AND outbox_delivered_is_untidy($1 * interval '1 microsecond'))
    OR coalesce((SELECT min(completed_at) FROM outbox_item) <= now() - $1::bigint * interval '1 microsecond', false)
    OR coalesce((SELECT min(dead_at) FROM outbox_dead WHERE $2::bigint IS NOT NULL AND NOT blocks)
        <= now() - $2 * interval '1 microsecond', false)
