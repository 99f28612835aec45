-- Where rows are that are due. Without their contents, because those in hand are found again at every read.
-- Parameters: a bit for each lane below 64, a bit for each lane from 64, legs to skip.
SELECT rowid, lane, seq, leg, id
FROM outbox_waiting
WHERE due_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
    AND CASE WHEN lane < 64 THEN ?1 >> lane ELSE ?2 >> (lane - 64) END & 1
    AND leg NOT IN (SELECT value FROM json_each(?3))
ORDER BY due_at, seq;

-- One of them.
SELECT seq, lane, leg, attempts,
    coalesce(expires_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER), 0) AS expired,
    id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id,
    schema_version, idempotency_key, priority, created_at, expires_at, max_attempts
FROM outbox_waiting
WHERE rowid = ?1 AND id = ?2;
