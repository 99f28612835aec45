-- How much is old, and how much there is at all. Parameters: how old delivered messages and dead letters are at least, in
-- microseconds, or NULL where they do not count; whether idempotency keys count; the age of notes of consumers, or NULL. What
-- blocks a key is never old.
SELECT coalesce(sum(old), 0), coalesce(sum(everything), 0) FROM (
    SELECT sum(delivered_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1) AS old,
        count(*) AS everything
    FROM outbox_delivered WHERE ?1 IS NOT NULL
    UNION ALL
    SELECT sum(completed_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1), count(*)
    FROM outbox_item WHERE ?1 IS NOT NULL AND state = 'completed'
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
