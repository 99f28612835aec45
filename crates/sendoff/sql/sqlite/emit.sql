-- One message. Parameters in the order of every emit statement; a trigger sees to the idempotency key and the schedule.
INSERT INTO outbox_message (
    id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version, idempotency_key,
    available_at, expires_at, priority, max_attempts)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
    coalesce(?11, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?12), ?13, ?14, ?15)
