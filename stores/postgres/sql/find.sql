-- $1 id. Every leg of one message, with what was tried.
SELECT
    a.status, a.id, substr(a.topic, 1, 1024), a.leg, substr(a.key, 1, 1024), a.lane, a.seq, substr(a.aggregate_type, 1, 1024), substr(a.aggregate_id, 1, 1024), a.schema_version,
    substr(a.idempotency_key, 1, 1024), substr(a.content_type, 1, 1024), CASE WHEN pg_column_size(a.headers) <= 1048576 THEN a.headers::text END, substring(a.payload FROM 1 FOR 16777216), a.priority, a.attempts, a.max_attempts,
    a.last_error, a.detail, coalesce(w.history, d.history)::text, a.created_at, a.due_at, a.expires_at, a.ended_at, octet_length(a.payload)::bigint
FROM outbox_all AS a
LEFT JOIN outbox_waiting AS w
    ON a.status IN ('pending', 'retry') AND a.detail IS NOT NULL AND w.lane = a.lane AND w.seq = a.seq AND w.leg = a.leg AND w.id = a.id
LEFT JOIN outbox_dead AS d ON a.status = 'dead' AND d.lane = a.lane AND d.seq = a.seq AND d.leg = a.leg
        AND d.id = a.id
WHERE a.id = $1
ORDER BY a.created_at, a.seq, a.leg, a.ended_at
