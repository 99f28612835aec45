-- Whether there is anything to do: asked first, because relays ask often and share the write lock with all other writers.
-- Parameters: retention of delivered messages and of dead letters in microseconds, or NULL.
SELECT EXISTS (SELECT 1 FROM outbox_dedup WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    OR EXISTS (
        SELECT 1 FROM outbox_inbox
        WHERE handled_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - 1000000 * coalesce(
            (SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'inbox_retention_seconds'), 2592000))
    OR EXISTS (
        SELECT 1 FROM outbox_delivered
        WHERE delivered_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1)
    OR EXISTS (
        SELECT 1 FROM outbox_job
        WHERE state = 'completed'
            AND completed_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1)
    OR EXISTS (
        SELECT 1 FROM outbox_dead
        WHERE dead_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?2 AND NOT blocks)
