-- Items in the order of their emission, with the columns of list.sql, the worker and the end of its lease. {state} is a
-- condition on the state; $1 ids, none for all, $2 the number behind which to begin, $3 how many.
SELECT
    CASE i.state WHEN 'completed' THEN 'delivered' WHEN 'failed' THEN 'dead' WHEN 'retry' THEN 'retry' ELSE 'pending' END,
    i.id, i.topic, '', i.key, 0::smallint, i.seq, i.aggregate_type, i.aggregate_id, i.schema_version, i.idempotency_key,
    i.content_type, i.headers::text, i.payload, i.priority, i.attempts, i.max_attempts, i.last_error, i.state, NULL::text,
    i.created_at, CASE WHEN i.state <> 'running' THEN i.next_attempt_at END, i.expires_at, i.completed_at,
    i.lease_owner, i.lease_until
FROM outbox_item AS i
WHERE {state} AND (cardinality($1) = 0 OR i.id = ANY ($1)) AND i.seq > $2
ORDER BY i.seq LIMIT $3
