-- $1 lanes, $2 seqs.
WITH gone AS (
    DELETE FROM outbox_message AS m USING unnest($1, $2) AS d (lane, seq) WHERE m.lane = d.lane AND m.seq = d.seq
    RETURNING m.*
)
INSERT INTO outbox_delivered (
    lane, priority, max_attempts, seq, created_at, id, schema_version, available_at, expires_at, topic, key,
    content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, seq, created_at, id, schema_version, available_at, expires_at, topic, key,
    content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload
FROM gone
