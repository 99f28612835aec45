-- $1 worker, $2 how many, $3 lease in microseconds.
SELECT
    is_failed, due_at, seq, claim, id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version,
    idempotency_key, priority, created_at, expires_at, attempts, max_attempts
FROM outbox_claim_items($1, $2, $3)
