-- Messages that fit the filter, oldest first.
SELECT
    a.status, a.id, a.topic, a.leg, a.`key`, a.lane, a.seq, a.aggregate_type, a.aggregate_id, a.schema_version,
    a.idempotency_key, a.content_type, IF(OCTET_LENGTH(a.headers) <= 4096, a.headers, NULL), SUBSTRING(a.payload, 1, 4096), a.priority, a.attempts, a.max_attempts, a.last_error,
    a.detail, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.created_at),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.due_at), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.expires_at),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a.ended_at), OCTET_LENGTH(a.payload)
FROM outbox_all AS a
WHERE (:status IS NULL OR a.status = :status) AND
{filter}
ORDER BY a.created_at, a.seq, a.leg, a.ended_at LIMIT :limit OFFSET :offset
