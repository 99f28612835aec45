-- $1 lanes, $2 seqs, $3 ids, $4 legs they had, $5 legs they die at, $6 reasons, $7 errors, $8 whether charged, $9 whether
-- they block. The row is copied as it is, without being read: it may be one that cannot be. A ready row has no leg: $4 is ''.
INSERT INTO outbox_dead (
    lane, priority, max_attempts, attempts, seq, created_at, id, schema_version, blocks, available_at, expires_at, leg,
    reason, topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
    payload)
SELECT
    m.lane, m.priority, m.max_attempts, s.charged::integer, m.seq, m.created_at, m.id, m.schema_version, s.blocks,
    m.available_at, m.expires_at, s.leg, s.reason, m.topic, m.key, m.content_type, m.headers, m.aggregate_type,
    m.aggregate_id, m.idempotency_key, s.error, outbox_add_history('[]', s.leg, s.error), m.payload
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) AS s (lane, seq, id, had, leg, reason, error, charged, blocks)
JOIN outbox_message AS m ON m.lane = s.lane AND m.seq = s.seq AND m.id = s.id
ON CONFLICT (lane, seq, leg, id) DO UPDATE SET
    attempts = excluded.attempts, dead_at = excluded.dead_at, blocks = excluded.blocks, reason = excluded.reason,
    last_error = excluded.last_error, history = excluded.history
