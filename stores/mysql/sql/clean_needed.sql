-- Whether there is anything to do: relays ask often. age and dead_age: retention of delivered messages and of dead
-- letters in microseconds, or NULL.
SELECT EXISTS (SELECT 1 FROM outbox_dedup WHERE until <= UTC_TIMESTAMP(6))
    OR EXISTS (
        SELECT 1 FROM outbox_inbox WHERE handled_at <= UTC_TIMESTAMP(6) - INTERVAL coalesce(
            (SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'inbox_retention_seconds'), 2592000) SECOND)
    OR EXISTS (
        SELECT 1 FROM outbox_delivered WHERE delivered_at <= UTC_TIMESTAMP(6) - INTERVAL :age MICROSECOND)
    OR EXISTS (
        SELECT 1 FROM outbox_job
        WHERE completed_at <= UTC_TIMESTAMP(6) - INTERVAL :age MICROSECOND AND state = 'completed')
    OR EXISTS (
        SELECT 1 FROM outbox_dead WHERE dead_at <= UTC_TIMESTAMP(6) - INTERVAL :dead_age MICROSECOND AND NOT blocks)
