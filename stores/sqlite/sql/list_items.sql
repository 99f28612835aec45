-- Items in the order of their emission, with the columns of list.sql, the worker and the end of its lease. {state} is a
-- condition on the state. Parameters: ids as JSON, none for all; the number behind which to begin; how many.
SELECT
    CASE state WHEN 'completed' THEN 'delivered' WHEN 'failed' THEN 'dead' WHEN 'retry' THEN 'retry' ELSE 'pending' END,
    id, topic, '', key, 0, seq, aggregate_type, aggregate_id, schema_version, idempotency_key, content_type, headers,
    payload, priority, attempts, max_attempts, last_error, state, created_at,
    CASE WHEN state IN ('pending', 'retry') THEN next_attempt_at END, expires_at, completed_at, NULL, lease_owner,
    lease_until
FROM outbox_item
WHERE {state} AND (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1))) AND seq > ?2
ORDER BY seq LIMIT ?3
