-- Failed items in the order of their emission, with the columns of list.sql: of these ids if there are any, behind a number.
SELECT
    'dead', i.id, i.topic, '', i.`key`, 0, i.seq, i.aggregate_type, i.aggregate_id, i.schema_version,
    i.idempotency_key, i.content_type, i.headers, i.payload, i.priority, i.attempts, i.max_attempts, i.last_error,
    'failed', NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.created_at), NULL,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.expires_at), NULL
FROM outbox_item AS i
WHERE i.state = 'failed' AND (:all OR i.id IN (
    SELECT j.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(36) CHARACTER SET ascii PATH '$')) AS j))
    AND i.seq > :after
ORDER BY i.seq LIMIT :limit;
