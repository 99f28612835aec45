-- How much is old, and how much there is at all. Ages of delivered messages, dead letters and notes of consumers in
-- microseconds, or NULL where they do not count; dedup: whether idempotency keys count. What blocks a key is never old.
SELECT CAST(coalesce(sum(old), 0) AS SIGNED), CAST(coalesce(sum(everything), 0) AS SIGNED) FROM (
    SELECT sum(delivered_at <= UTC_TIMESTAMP(6) - INTERVAL :delivered MICROSECOND) AS old, count(*) AS everything
    FROM outbox_delivered WHERE :delivered IS NOT NULL
    UNION ALL
    SELECT sum(completed_at <= UTC_TIMESTAMP(6) - INTERVAL :delivered MICROSECOND), count(*)
    FROM outbox_item WHERE :delivered IS NOT NULL AND state = 'completed'
    UNION ALL
    SELECT sum(dead_at <= UTC_TIMESTAMP(6) - INTERVAL :dead MICROSECOND AND NOT blocks), count(*)
    FROM outbox_dead WHERE :dead IS NOT NULL
    UNION ALL
    SELECT sum(until <= UTC_TIMESTAMP(6)), count(*) FROM outbox_dedup WHERE :dedup
    UNION ALL
    SELECT sum(handled_at <= UTC_TIMESTAMP(6) - INTERVAL :inbox MICROSECOND), count(*)
    FROM outbox_inbox WHERE :inbox IS NOT NULL
) AS kinds
