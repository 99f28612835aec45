-- How much is old enough and still there. Parameters: how old delivered messages and dead letters are at least, in
-- microseconds, or NULL; whether idempotency keys count; how old notes of consumers are at
-- least, or NULL.
SELECT
    (SELECT count(*) FROM outbox_delivered
        WHERE delivered_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1)
    + (SELECT count(*) FROM outbox_item
        WHERE state = 'completed' AND completed_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1)
    + (SELECT count(*) FROM outbox_dead
        WHERE dead_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?2 AND NOT blocks)
    + (SELECT count(*) FROM outbox_dedup
        WHERE ?3 AND until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    + (SELECT count(*) FROM outbox_inbox
        WHERE handled_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?4)
