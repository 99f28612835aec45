-- $1 lanes, $2 seqs, $3 legs.
WITH gone AS (
    DELETE FROM outbox_waiting AS w USING unnest($1, $2, $3) AS d (lane, seq, leg)
    WHERE w.lane = d.lane AND w.seq = d.seq AND w.leg = d.leg
    RETURNING w.*
)
INSERT INTO outbox_delivered (
    lane, priority, max_attempts, attempts, seq, created_at, id, schema_version, available_at, expires_at, leg, topic,
    key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, attempts, seq, created_at, id, schema_version, available_at, expires_at, leg, topic,
    key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload
FROM gone
