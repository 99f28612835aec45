-- One message, no idempotency key. Parameters in the order of every emit statement.
INSERT INTO outbox_message (
    id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version, idempotency_key,
    available_at, expires_at, priority, max_attempts)
VALUES (
    $1::uuid, $2::text, $3::bytea, $4::text, $5::text::jsonb, $6::text, $7::text, $8::text, $9::bigint::integer, $10::text,
    coalesce(timestamptz 'epoch' + $11::bigint * interval '1 microsecond', now() + $12::bigint * interval '1 microsecond'),
    timestamptz 'epoch' + $13::bigint * interval '1 microsecond', $14::bigint::smallint, $15::bigint::smallint)
