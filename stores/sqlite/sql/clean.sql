-- Whether there is anything to do: asked first, because relays ask again and again and the write lock is everybody's.
-- Parameter: retention in microseconds, or NULL to keep delivered messages.
SELECT EXISTS (SELECT 1 FROM outbox_dedup WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    OR EXISTS (
        SELECT 1 FROM outbox_delivered
        WHERE delivered_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1);

-- Idempotency keys whose window is over. Parameter: how many at most.
DELETE FROM outbox_dedup WHERE (topic, idempotency_key) IN (
    SELECT topic, idempotency_key FROM outbox_dedup
    WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
    ORDER BY until LIMIT ?1);

-- Delivered messages that were kept long enough. Parameters: retention in microseconds, how many at most.
DELETE FROM outbox_delivered WHERE rowid IN (
    SELECT rowid FROM outbox_delivered
    WHERE delivered_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1
    ORDER BY delivered_at LIMIT ?2);
