-- The time, the approximate numbers of ready, waiting and dead rows, and for how long the oldest waiting row has been due.
-- No table is counted: up to $1 rows are read; beyond that the server's statistics are used. They are also used
-- if there are so many dead tuples that reading a few rows would scan all of them.
WITH known AS (
    SELECT
        pg_stat_get_live_tuples('outbox_message'::regclass) AS ready,
        pg_stat_get_dead_tuples('outbox_message'::regclass) > 20 * $1 AS ready_littered,
        pg_stat_get_live_tuples('outbox_waiting'::regclass) AS waiting,
        pg_stat_get_dead_tuples('outbox_waiting'::regclass) > 20 * $1 AS waiting_littered,
        pg_stat_get_live_tuples('outbox_dead'::regclass) AS dead
)
SELECT
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    CASE WHEN ready > $1 OR ready_littered THEN ready
        ELSE (SELECT count(*) FROM (SELECT 1 FROM outbox_message LIMIT $1) AS few) END,
    CASE WHEN waiting > $1 OR waiting_littered THEN waiting
        ELSE (SELECT count(*) FROM (SELECT 1 FROM outbox_waiting LIMIT $1) AS few) END,
    CASE WHEN dead > $1 THEN dead
        ELSE (SELECT count(*) FROM (SELECT 1 FROM outbox_dead LIMIT $1) AS few) END,
    (SELECT (extract(epoch FROM clock_timestamp() - w.due_at) * 1000000)::bigint FROM outbox_waiting AS w
        WHERE w.due_at <= clock_timestamp() ORDER BY w.due_at LIMIT 1)
FROM known
