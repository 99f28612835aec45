-- The filter as a condition on the rows of a, put in where a statement says so. NULL where it says nothing: $1 ids, $3
-- topic as a LIKE pattern, $4 key, $5 and $6 aggregate type and id, $7 idempotency key, $8 leg, $9 part of the error,
-- $10 part of the payload, $11 and $12 created from and until. $2 is the status, which every statement knows by itself.
    ($1::uuid[] IS NULL OR a.id = ANY ($1))
    AND ($3::text IS NULL OR a.topic LIKE $3)
    AND ($4::text IS NULL OR a.key = $4)
    AND ($5::text IS NULL OR a.aggregate_type = $5)
    AND ($6::text IS NULL OR a.aggregate_id = $6)
    AND ($7::text IS NULL OR a.idempotency_key = $7)
    AND ($8::text IS NULL OR a.leg = $8)
    AND ($9::text IS NULL OR strpos(a.last_error, $9) > 0)
    AND ($10::bytea IS NULL OR position($10 IN a.payload) > 0)
    AND ($11::timestamptz IS NULL OR a.created_at >= $11)
    AND ($12::timestamptz IS NULL OR a.created_at < $12)
