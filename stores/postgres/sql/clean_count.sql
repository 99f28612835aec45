-- Number of old rows and of all rows. $1 and $2 minimum age of delivered messages and dead letters in microseconds, or NULL
-- to leave them out; $3 whether to count idempotency keys; $4 minimum age of inbox records, or NULL.
-- Dead letters that block a key never count as old.
SELECT coalesce(sum(old), 0)::bigint, coalesce(sum(count), 0)::bigint FROM (
    SELECT count(*) FILTER (WHERE delivered_at <= now() - $1::bigint * interval '1 microsecond') AS old, count(*) AS count
    FROM outbox_delivered WHERE $1 IS NOT NULL
    UNION ALL
    SELECT count(*) FILTER (WHERE completed_at <= now() - $1 * interval '1 microsecond'), count(*)
    FROM outbox_job WHERE $1 IS NOT NULL AND completed_at IS NOT NULL
    UNION ALL
    SELECT count(*) FILTER (WHERE dead_at <= now() - $2::bigint * interval '1 microsecond' AND NOT blocks), count(*)
    FROM outbox_dead WHERE $2 IS NOT NULL
    UNION ALL
    SELECT count(*) FILTER (WHERE until <= now()), count(*) FROM outbox_dedup WHERE $3
    UNION ALL
    SELECT count(*) FILTER (WHERE handled_at <= now() - $4::bigint * interval '1 microsecond'), count(*)
    FROM outbox_inbox WHERE $4 IS NOT NULL
) AS kinds
