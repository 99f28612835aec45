-- Items in the order of their emission, with the columns of list.sql, the worker and the end of its lease. {state} is a
-- condition on the state; of these ids if there are any, behind a number.
SELECT
    CASE i.state WHEN 'completed' THEN 'delivered' WHEN 'failed' THEN 'dead' WHEN 'retry' THEN 'retry' ELSE 'pending' END,
    i.id, i.topic, '', i.`key`, 0, i.seq, i.aggregate_type, i.aggregate_id, i.schema_version, i.idempotency_key,
    i.content_type, i.headers, i.payload, i.priority, i.attempts, i.max_attempts, i.last_error, i.state, NULL,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.created_at),
    IF(i.state = 'running', NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.next_attempt_at)),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.expires_at), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.completed_at),
    i.lease_owner, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.lease_until)
FROM outbox_item AS i
WHERE {state} AND (:all OR i.id IN (
    SELECT j.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(36) CHARACTER SET ascii PATH '$')) AS j))
    AND i.seq > :after
ORDER BY i.seq LIMIT :limit;
