-- Number of old rows and of all rows. Parameters: minimum age of delivered messages and dead letters in microseconds, or NULL
-- to leave them out; whether to count idempotency keys; minimum age of inbox records, or NULL. Dead letters that block a key
-- never count as old.
SELECT coalesce(sum(old), 0), coalesce(sum(everything), 0) FROM (
    SELECT sum(delivered_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1) AS old,
        count(*) AS everything
    FROM outbox_delivered WHERE ?1 IS NOT NULL
    UNION ALL
    SELECT sum(completed_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1), count(*)
    FROM outbox_job WHERE ?1 IS NOT NULL AND state = 'completed'
    UNION ALL
    SELECT sum(dead_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?2 AND NOT blocks), count(*)
    FROM outbox_dead WHERE ?2 IS NOT NULL
    UNION ALL
    SELECT sum(until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)), count(*)
    FROM outbox_dedup WHERE ?3
    UNION ALL
    SELECT sum(handled_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?4), count(*)
    FROM outbox_inbox WHERE ?4 IS NOT NULL
)
