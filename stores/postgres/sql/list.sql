-- $1 to $12 the filter. $13 how many, $14 how many to pass over.
SELECT
    a.status, a.id, a.topic, a.leg, a.key, a.lane, a.seq, a.aggregate_type, a.aggregate_id, a.schema_version,
    a.idempotency_key, a.content_type, a.headers::text, a.payload, a.priority, a.attempts, a.max_attempts,
    a.last_error, a.detail, NULL::text, a.created_at, a.due_at, a.expires_at, a.ended_at
FROM outbox_all AS a
WHERE ($2::text IS NULL OR a.status = $2) AND
{filter}
ORDER BY a.created_at, a.seq, a.leg, a.ended_at LIMIT $13 OFFSET $14
