-- Many messages, none with an idempotency key: one array a parameter of emit.sql. They get their seq in this order.
INSERT INTO outbox_message (
    id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version, idempotency_key,
    available_at, expires_at, priority, max_attempts)
SELECT
    m.id, m.topic, m.payload, m.content_type, m.headers::jsonb, m.key, m.aggregate_type, m.aggregate_id,
    m.schema_version::integer, m.idempotency_key,
    coalesce(timestamptz 'epoch' + m.available_at * interval '1 microsecond', now() + m.delay * interval '1 microsecond'),
    timestamptz 'epoch' + m.expires_at * interval '1 microsecond', m.priority::smallint, m.max_attempts::smallint
FROM unnest(
    $1::uuid[], $2::text[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
    $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[]
) AS m (id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version, idempotency_key,
    available_at, delay, expires_at, priority, max_attempts)
