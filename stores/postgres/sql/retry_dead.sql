-- $1 to $12 the filter, as in list. A letter whose leg is waiting already stays where it is. All of a key are due at the
-- same moment: ties are read in the order of seq.
WITH chosen AS (
    SELECT a.lane, a.seq, a.leg FROM outbox_all AS a
    WHERE a.status = 'dead' AND
    ($1::uuid[] IS NULL OR a.id = ANY ($1))
    AND ($2::text IS NULL OR a.status = $2)
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
), gone AS (
    DELETE FROM outbox_dead AS d USING chosen AS c
    WHERE d.lane = c.lane AND d.seq = c.seq AND d.leg = c.leg AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS w WHERE w.lane = d.lane AND w.seq = d.seq AND w.leg = d.leg)
    RETURNING d.*
), moved AS (
    INSERT INTO outbox_waiting (
        lane, priority, max_attempts, attempts, seq, due_at, created_at, id, schema_version, available_at, expires_at,
        leg, state, topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error,
        history, payload)
    SELECT
        lane, priority, max_attempts, 0, seq, now(), created_at, id, schema_version, available_at, expires_at, leg,
        'retry', topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
        payload
    FROM gone
    RETURNING 1
)
SELECT count(*) FROM moved
