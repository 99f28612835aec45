-- Whether there is anything to do: relays ask often. Day partitions are not scanned here, only the tables that are
-- cleaned row by row, and whether a partition must be created or dropped. $1 and $2 retention of delivered messages and of
-- dead letters in microseconds, or NULL.
-- It reads the oldest row, which an index answers; for "is there an old row" the planner may scan the whole table.
SELECT coalesce((SELECT min(until) FROM outbox_dedup) <= now(), false)
    OR coalesce((SELECT min(handled_at) FROM outbox_inbox) <= now() - outbox_inbox_retention(), false)
    OR ($1::bigint IS NOT NULL AND outbox_delivered_is_untidy($1 * interval '1 microsecond'))
    OR coalesce((SELECT min(completed_at) FROM outbox_job) <= now() - $1::bigint * interval '1 microsecond', false)
    OR coalesce((SELECT min(dead_at) FROM outbox_dead WHERE $2::bigint IS NOT NULL AND NOT blocks)
        <= now() - $2 * interval '1 microsecond', false)
