-- Idempotency keys whose window is over. Parameter: how many at most.
DELETE FROM outbox_dedup WHERE (topic, idempotency_key) IN (
    SELECT topic, idempotency_key FROM outbox_dedup
    WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
    ORDER BY until LIMIT ?1)
