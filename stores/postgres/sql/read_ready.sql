-- $1 lanes, $2 where to start in each (not included), $3 how many of each, $4 whether to take a transaction id.
-- The first row is about the statement itself: the head of the sequence, its snapshot, when the server started, and a
-- transaction id. It belongs in here: rows and snapshot have to be of one moment.
SELECT
    NULL::smallint,
    (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM outbox_message_seq_seq),
    NULL::uuid, pg_current_snapshot()::text, NULL::bytea, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text,
    NULL::integer, NULL::text, NULL::smallint, NULL::smallint,
    pg_postmaster_start_time(), NULL::timestamptz, false,
    CASE WHEN $4 THEN pg_current_xact_id()::text::bigint END,
    NULL::tid
UNION ALL
SELECT
    m.lane, m.seq, m.id, m.topic, m.payload, m.content_type, m.headers::text, m.key, m.aggregate_type, m.aggregate_id,
    m.schema_version, m.idempotency_key, m.priority, m.max_attempts, m.created_at, m.expires_at,
    coalesce(m.expires_at <= now(), false), NULL, m.ctid
FROM unnest($1, $2, $3) AS l (lane, floor, size)
CROSS JOIN LATERAL (
    SELECT o.*, o.ctid FROM outbox_message AS o WHERE o.lane = l.lane AND o.seq > l.floor ORDER BY o.seq LIMIT l.size
) AS m
