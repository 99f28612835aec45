-- One or many messages of which some have an idempotency key: returns, for each in order, the id that holds the key.
SELECT outbox_emit(
    m.topic, m.payload, m.id, m.content_type, m.headers::jsonb, m.key, m.aggregate_type, m.aggregate_id,
    m.schema_version::integer, m.idempotency_key,
    coalesce(timestamptz 'epoch' + m.available_at * interval '1 microsecond', now() + m.delay * interval '1 microsecond'),
    timestamptz 'epoch' + m.expires_at * interval '1 microsecond', m.priority::smallint, m.max_attempts::smallint) AS id
FROM unnest(
    $1::uuid[], $2::text[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
    $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[]
) AS m (id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version, idempotency_key,
    available_at, delay, expires_at, priority, max_attempts)
