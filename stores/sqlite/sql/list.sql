-- Messages that fit a filter, oldest first. Parameters: ids, status, topic as a GLOB, key, aggregate type, aggregate
-- id, idempotency key, leg, part of the error, part of the payload, created from, created until, limit, offset.
SELECT status, id, topic, leg, key, lane, seq, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, headers, payload, priority, attempts, max_attempts, last_error, detail, created_at, due_at,
    expires_at, ended_at,
    NULL AS history
FROM outbox_all
WHERE (?2 IS NULL OR status = ?2)
    AND (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1)))
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
ORDER BY created_at, seq, leg
LIMIT ?13 OFFSET ?14
