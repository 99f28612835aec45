-- Dead letters that fit a filter. Parameters as in list.sql; the second, the status, is not looked at.
SELECT rowid
FROM outbox_dead
WHERE (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1)))
    AND (?3 IS NULL OR topic GLOB ?3)
    AND (?4 IS NULL OR key = ?4)
    AND (?5 IS NULL OR aggregate_type = ?5)
    AND (?6 IS NULL OR aggregate_id = ?6)
    AND (?7 IS NULL OR idempotency_key = ?7)
    AND (?8 IS NULL OR leg = ?8)
    AND (?9 IS NULL OR instr(last_error, ?9) > 0)
    AND (?10 IS NULL OR instr(CAST(payload AS BLOB), CAST(?10 AS BLOB)) > 0)
    AND (?11 IS NULL OR created_at >= ?11)
    AND (?12 IS NULL OR created_at < ?12)
ORDER BY seq;

-- Brings one back, unless a row waits in its place. Parameter: its rowid.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, leg, state, last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, 0, seq, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),
    created_at, leg, 'retry', last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_dead
WHERE rowid = ?1
ON CONFLICT (lane, seq, leg) DO NOTHING;

-- Takes it out of the dead letters.
DELETE FROM outbox_dead WHERE rowid = ?1;
