-- The filter as a condition on the rows of a, inserted into other statements. NULL means "any": $1 ids, $3
-- topic, $4 key, $5 and $6 aggregate type and id as LIKE patterns, $7 idempotency key, $8 sink, $9 part of the error,
-- $10 part of the payload, $11 and $12 created from and until, $13 the text to search for, $14 values in the payload as JSON.
-- $2 is the status, which every statement checks itself.
    ($1::uuid[] IS NULL OR a.id = ANY ($1))
    AND ($3::text IS NULL OR a.topic LIKE $3)
    AND ($4::text IS NULL OR a.key LIKE $4)
    AND ($5::text IS NULL OR a.aggregate_type LIKE $5)
    AND ($6::text IS NULL OR a.aggregate_id LIKE $6)
    AND ($7::text IS NULL OR a.idempotency_key = $7)
    AND ($8::text IS NULL OR a.sink = $8)
    AND ($9::text IS NULL OR strpos(a.last_error, $9) > 0)
    AND ($10::bytea IS NULL OR position($10 IN a.payload) > 0)
    AND ($11::timestamptz IS NULL OR a.created_at >= $11)
    AND ($12::timestamptz IS NULL OR a.created_at < $12)
    AND ($13::text IS NULL OR starts_with(a.id::text, lower($13)) OR strpos(concat_ws(chr(1), a.topic, a.key,
        a.aggregate_type, a.aggregate_id, a.idempotency_key, a.last_error), $13) > 0)
    AND ($14::text IS NULL OR outbox_payload_fits(a.payload, $14))
