-- Failed items in the order of their emission, with the columns of list.sql. Parameters: ids as JSON, none for all; the
-- number behind which to begin; how many.
SELECT 'dead', id, topic, '', key, 0, seq, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, attempts, max_attempts, last_error, 'failed', created_at, NULL,
    expires_at, NULL,
    NULL AS history
FROM outbox_item
WHERE state = 'failed' AND (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1))) AND seq > ?2
ORDER BY seq LIMIT ?3
