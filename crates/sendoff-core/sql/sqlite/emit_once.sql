-- Takes an idempotency key. Returns the id that holds it: the caller's own if the key was free. Parameters: id, topic,
-- key. Only the holder emits; no other writer comes between, because the caller's transaction holds the write lock.
INSERT INTO outbox_dedup (id, topic, idempotency_key, until)
SELECT ?1, ?2, ?3, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + 1000000 * coalesce(
    (SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'dedup_window_seconds'), 604800)
WHERE true
ON CONFLICT (topic, idempotency_key) DO UPDATE SET
    id = CASE WHEN until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN excluded.id ELSE id END,
    until = CASE WHEN until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        THEN excluded.until ELSE until END,
    is_stored = CASE WHEN until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN 0 ELSE is_stored END
RETURNING id
