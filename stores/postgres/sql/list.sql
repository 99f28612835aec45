-- $1 to $12 the filter, NULL where it says nothing: ids, status, topic as a LIKE pattern, key, aggregate type and id,
-- idempotency key, leg, error, payload, created from and until. $13 how many, $14 how many to pass over.
SELECT
    a.status, a.id, a.topic, a.leg, a.key, a.lane, a.seq, a.aggregate_type, a.aggregate_id, a.schema_version,
    a.idempotency_key, a.content_type, a.headers::text, a.payload, a.priority, a.attempts, a.max_attempts,
    a.last_error, a.detail, NULL::text, a.created_at, a.due_at, a.expires_at, a.ended_at
FROM outbox_all AS a
WHERE
    ($1::uuid[] IS NULL OR a.id = ANY ($1))
    AND ($2::text IS NULL OR a.status = $2)
    AND ($3::text IS NULL OR a.topic LIKE $3)
    AND ($4::text IS NULL OR a.key = $4)
    AND ($5::text IS NULL OR a.aggregate_type = $5)
    AND ($6::text IS NULL OR a.aggregate_id = $6)
    AND ($7::text IS NULL OR a.idempotency_key = $7)
    AND ($8::text IS NULL OR a.leg = $8)
    AND ($9::text IS NULL OR strpos(a.last_error, $9) > 0)
    AND ($10::bytea IS NULL OR position($10 IN a.payload) > 0)
    AND ($11::timestamptz IS NULL OR a.created_at >= $11)
    AND ($12::timestamptz IS NULL OR a.created_at < $12)
ORDER BY a.created_at, a.seq, a.leg, a.ended_at LIMIT $13 OFFSET $14
