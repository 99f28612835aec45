-- Every leg of one message, with what was tried.
SELECT
    a.status, a.id, a.topic, a.leg, a.`key`, a.lane, a.seq, a.aggregate_type, a.aggregate_id, a.schema_version,
    a.idempotency_key, a.content_type, a.headers, SUBSTRING(a.payload, 1, 16777216), a.priority, a.attempts, a.max_attempts, a.last_error,
    a.detail, coalesce(w.history, d.history), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.created_at),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.due_at), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.expires_at),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.ended_at), OCTET_LENGTH(a.payload)
FROM outbox_all AS a
LEFT JOIN outbox_waiting AS w
    ON a.status IN ('pending', 'retry') AND a.detail IS NOT NULL AND w.lane = a.lane AND w.seq = a.seq AND w.leg = a.leg
    AND w.id = a.id
LEFT JOIN outbox_dead AS d ON a.status = 'dead' AND d.lane = a.lane AND d.seq = a.seq AND d.leg = a.leg AND d.id = a.id
WHERE a.id = :id
ORDER BY a.created_at, a.seq, a.leg, a.ended_at
