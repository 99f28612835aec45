-- $1 lanes, $2 the seq after which to start in each lane, $3 how many per lane, $4 whether to take a transaction id.
-- The first row describes the statement: the head of the sequence as seq, its snapshot as topic, the start time of
-- the server as created_at, and a transaction id. It is in this statement, because rows and snapshot must be from the same moment.
SELECT
    NULL::smallint AS lane,
    (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM outbox_message_seq_seq) AS seq,
    {nulls topic=pg_current_snapshot()::text created_at=pg_postmaster_start_time()},
    false AS expired, CASE WHEN $4 THEN pg_current_xact_id()::text::bigint END AS xid, NULL::tid AS locator
UNION ALL
SELECT
    m.lane, m.seq, {m.contents}, coalesce(m.expires_at <= now(), false) AS expired, NULL AS xid, m.ctid AS locator
FROM unnest($1, $2, $3) AS l (lane, floor, size)
CROSS JOIN LATERAL (
    SELECT o.*, o.ctid FROM outbox_message AS o WHERE o.lane = l.lane AND o.seq > l.floor ORDER BY o.seq LIMIT l.size
) AS m
