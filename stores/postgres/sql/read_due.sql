-- $1 lanes, $2 legs to leave out, $3 how many.
SELECT
    lane, seq, id, topic, payload, content_type, headers::text, key, aggregate_type, aggregate_id, schema_version,
    idempotency_key, priority, max_attempts, created_at, expires_at, coalesce(expires_at <= now(), false),
    leg, attempts
FROM outbox_waiting
WHERE due_at <= now() AND lane = ANY ($1) AND leg <> ALL ($2)
ORDER BY due_at, seq LIMIT $3
