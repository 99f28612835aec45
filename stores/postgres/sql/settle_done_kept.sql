-- Keeps copies of waiting rows that were confirmed; other statements take the rows away. $1 lanes, $2 seqs, $3 ids, $4 legs, $5
-- confirmed legs of rows that had not been routed, or none where a row is its own leg's.
INSERT INTO outbox_delivered (
    lane, priority, max_attempts, attempts, seq, created_at, id, schema_version, available_at, expires_at, leg, topic,
    key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    w.lane, w.priority, w.max_attempts, w.attempts, w.seq, w.created_at, w.id, w.schema_version, w.available_at,
    w.expires_at, coalesce(d.confirmed, w.leg), w.topic, w.key, w.content_type, w.headers, w.aggregate_type,
    w.aggregate_id, w.idempotency_key, w.payload
FROM unnest($1, $2, $3, $4, $5) AS d (lane, seq, id, leg, confirmed)
JOIN outbox_waiting AS w ON w.lane = d.lane AND w.seq = d.seq AND w.leg = d.leg AND w.id = d.id
