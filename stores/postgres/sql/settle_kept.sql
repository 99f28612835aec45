-- Keeps copies of ready rows that were confirmed; other statements take the rows away. $1 lanes, $2 seqs, $3 ids, $4 legs, or none
-- where all of a row are confirmed.
INSERT INTO outbox_delivered (
    lane, priority, max_attempts, seq, created_at, id, schema_version, available_at, expires_at, leg, topic, key,
    content_type, headers, aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    m.lane, m.priority, m.max_attempts, m.seq, m.created_at, m.id, m.schema_version, m.available_at, m.expires_at,
    coalesce(d.leg, ''), m.topic, m.key, m.content_type, m.headers, m.aggregate_type, m.aggregate_id, m.idempotency_key,
    m.payload
FROM unnest($1, $2, $3, $4) AS d (lane, seq, id, leg)
JOIN outbox_message AS m ON m.lane = d.lane AND m.seq = d.seq AND m.id = d.id
