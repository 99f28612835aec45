-- Messages that fit a filter, oldest first. Parameters: the filter, how many, how many to pass over.
SELECT status, id, topic, leg, key, lane, seq, aggregate_type, aggregate_id, schema_version, idempotency_key,
    content_type, CASE WHEN length(headers) <= 4096 THEN headers END, substr(CAST(payload AS BLOB), 1, 4096), priority, attempts, max_attempts, last_error, detail, created_at, due_at,
    expires_at, ended_at,
    NULL AS history, length(CAST(payload AS BLOB))
FROM outbox_all
WHERE (?2 IS NULL OR status = ?2) AND
{filter}
ORDER BY created_at, seq, leg, id
LIMIT ?13 OFFSET ?14
