-- How much is old enough and still there: delivered messages, dead letters and notes of consumers by their age in
-- microseconds, or NULL, and idempotency keys if they count.
SELECT
    (SELECT count(*) FROM outbox_delivered
        WHERE delivered_at <= UTC_TIMESTAMP(6) - INTERVAL :delivered MICROSECOND)
    + (SELECT count(*) FROM outbox_item
        WHERE completed_at <= UTC_TIMESTAMP(6) - INTERVAL :delivered MICROSECOND AND state = 'completed')
    + (SELECT count(*) FROM outbox_dead
        WHERE dead_at <= UTC_TIMESTAMP(6) - INTERVAL :dead MICROSECOND AND NOT blocks)
    + (SELECT count(*) FROM outbox_dedup WHERE :dedup AND until <= UTC_TIMESTAMP(6))
    + (SELECT count(*) FROM outbox_inbox WHERE handled_at <= UTC_TIMESTAMP(6) - INTERVAL :inbox MICROSECOND)
