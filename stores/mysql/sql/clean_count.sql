-- Number of old rows and of all rows. Minimum ages of delivered messages, dead letters and inbox records in microseconds, or
-- NULL to leave them out; dedup: whether to count idempotency keys. Dead letters that block a key never count as old.
SELECT CAST(coalesce(sum(old), 0) AS SIGNED), CAST(coalesce(sum(everything), 0) AS SIGNED) FROM (
    SELECT sum(delivered_at <= UTC_TIMESTAMP(6) - INTERVAL :delivered MICROSECOND) AS old, count(*) AS everything
    FROM outbox_delivered WHERE :delivered IS NOT NULL
    UNION ALL
    SELECT sum(completed_at <= UTC_TIMESTAMP(6) - INTERVAL :delivered MICROSECOND), count(*)
    FROM outbox_job WHERE :delivered IS NOT NULL AND state = 'completed'
    UNION ALL
    SELECT sum(dead_at <= UTC_TIMESTAMP(6) - INTERVAL :dead MICROSECOND AND NOT blocks), count(*)
    FROM outbox_dead WHERE :dead IS NOT NULL
    UNION ALL
    SELECT sum(until <= UTC_TIMESTAMP(6)), count(*) FROM outbox_dedup WHERE :dedup
    UNION ALL
    SELECT sum(handled_at <= UTC_TIMESTAMP(6) - INTERVAL :inbox MICROSECOND), count(*)
    FROM outbox_inbox WHERE :inbox IS NOT NULL
) AS kinds
