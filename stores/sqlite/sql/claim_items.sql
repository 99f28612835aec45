-- Whether anything is due: asked first, because workers ask again and again and the write lock is everybody's.
SELECT EXISTS (
    SELECT 1 FROM outbox_item
    WHERE state IN ('pending', 'retry', 'running')
        AND next_attempt_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));

-- What is due, in the order of claiming. Parameters: how many. It tells why an item cannot be handed out, too.
SELECT
    seq, claim, id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version,
    idempotency_key, priority, created_at, expires_at, attempts + 1, coalesce(max_attempts, (
        SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'item_max_attempts'), 5),
    CASE
        WHEN expires_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            THEN 'it had expired before it was claimed'
        WHEN attempts >= coalesce(max_attempts, (
        SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'item_max_attempts'), 5) AND state = 'running'
            THEN 'its last attempt did not end: the lease of worker ' || lease_owner || ' ran out'
        WHEN attempts >= coalesce(max_attempts, (
        SELECT CAST(value AS INTEGER) FROM outbox_setting WHERE name = 'item_max_attempts'), 5)
            THEN coalesce(last_error, 'it has no attempt left')
    END
FROM outbox_item INDEXED BY ix_outbox_item_due
WHERE state IN ('pending', 'retry', 'running')
    AND next_attempt_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
ORDER BY next_attempt_at, seq LIMIT ?1;

-- Hands one out, unless somebody has it since it was looked at. Parameters: worker, item, the number it had, lease in
-- microseconds, its new number.
UPDATE outbox_item SET
    state = 'running', claim = ?5, attempts = attempts + 1, lease_owner = ?1, leased_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),
    lease_until = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?4, next_attempt_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?4
WHERE seq = ?2 AND claim = ?3;

-- Gives one up instead. Parameters: item, the number it had, why, its new number.
UPDATE outbox_item SET
    state = 'failed', claim = ?4, lease_owner = NULL, leased_at = NULL, lease_until = NULL, last_error = ?3
WHERE seq = ?1 AND claim = ?2;
