-- All legs of one message. Parameter: the ways to write its id.
SELECT shown.status, shown.id, shown.topic, shown.leg, shown.key, shown.lane, shown.seq, shown.aggregate_type,
    shown.aggregate_id, shown.schema_version, shown.idempotency_key, shown.content_type, shown.headers, substr(CAST(shown.payload AS BLOB), 1, 16777216),
    shown.priority, shown.attempts, shown.max_attempts, shown.last_error, shown.detail, shown.created_at, shown.due_at,
    shown.expires_at, shown.ended_at,
    CASE
        WHEN shown.status = 'dead' THEN (
            SELECT history FROM outbox_dead AS dead
            WHERE dead.id = shown.id AND dead.lane = shown.lane AND dead.seq = shown.seq AND dead.leg = shown.leg)
        WHEN shown.status <> 'delivered' THEN (
            SELECT history FROM outbox_waiting AS waiting
            WHERE waiting.lane = shown.lane AND waiting.seq = shown.seq AND waiting.leg = shown.leg
                AND waiting.id = shown.id)
    END AS history, length(CAST(shown.payload AS BLOB))
FROM outbox_all AS shown
WHERE shown.id IN (SELECT value FROM json_each(?1))
ORDER BY shown.created_at, shown.seq, shown.leg
