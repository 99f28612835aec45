-- Failed items in the order of their emission, with the columns of list.sql. $1 ids, none for all, $2 the number behind which
-- to begin, $3 how many.
SELECT
    'dead', i.id, i.topic, '', i.key, 0::smallint, i.seq, i.aggregate_type, i.aggregate_id, i.schema_version,
    i.idempotency_key, i.content_type, i.headers::text, i.payload, i.priority, i.attempts, i.max_attempts,
    i.last_error, 'failed', NULL::text, i.created_at, NULL::timestamptz, i.expires_at, NULL::timestamptz
FROM outbox_item AS i
WHERE i.state = 'failed' AND i.next_attempt_at IS NULL AND i.completed_at IS NULL
    AND (cardinality($1) = 0 OR i.id = ANY ($1)) AND i.seq > $2
ORDER BY i.seq LIMIT $3
