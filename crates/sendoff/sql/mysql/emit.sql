-- One message. Parameters in the order of every emit statement; a trigger sees to its lane, its idempotency key and its
-- schedule. Points in time are cut to what the column takes: beyond it MySQL would make NULL of them.
INSERT INTO outbox_message (
    id, topic, payload, content_type, headers, `key`, aggregate_type, aggregate_id, schema_version, idempotency_key,
    available_at, expires_at, priority, max_attempts)
VALUES (
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    coalesce(
        TIMESTAMPADD(MICROSECOND, GREATEST(LEAST(?, 253370764800000000), 0), TIMESTAMP'1970-01-01 00:00:00.000000'),
        TIMESTAMPADD(MICROSECOND, LEAST(?, 31536000000000000), UTC_TIMESTAMP(6))),
    TIMESTAMPADD(MICROSECOND, GREATEST(LEAST(?, 253370764800000000), 0), TIMESTAMP'1970-01-01 00:00:00.000000'), ?, ?)
