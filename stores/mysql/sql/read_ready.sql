-- Where ready rows are, if there are not too many: one snapshot of all lanes, the first rows of each included. See the
-- decision on the reader for why this starts at the beginning of a lane every time. With their ids: after a failover
-- another message may have a number that is in hand.
SELECT lane, seq, CAST(id AS BINARY) FROM outbox_message FORCE INDEX (PRIMARY)
WHERE lane IN ({lanes}) ORDER BY lane, seq LIMIT {limit};

-- The first ones of one lane; those of all lanes are put together by UNION ALL, as one statement: one snapshot.
(SELECT lane, seq, CAST(id AS BINARY) FROM outbox_message FORCE INDEX (PRIMARY)
    WHERE lane = {lane} ORDER BY seq LIMIT {limit});

-- Some of them. They are the relay's own, so they are still there.
SELECT m.lane, m.seq, '', 0,
    CAST(m.id AS BINARY), m.topic, m.payload, m.content_type, m.headers, m.`key`, m.aggregate_type, m.aggregate_id, m.schema_version,
    m.idempotency_key, m.priority, m.max_attempts, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', m.created_at),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', m.expires_at), coalesce(m.expires_at <= UTC_TIMESTAMP(6), false)
FROM JSON_TABLE('{rows}', '$[*]' COLUMNS (lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY) ON m.lane = s.lane AND m.seq = s.seq;

-- Rows in the lanes that no relay leases, locked: what is to come later, and what was written before.
SELECT lane, seq FROM outbox_message FORCE INDEX (PRIMARY)
WHERE lane IN (80, 81) ORDER BY lane, seq LIMIT 500 FOR UPDATE SKIP LOCKED;

-- One that is to come later goes where it waits for its time.
CALL outbox_file(:seq);

-- One that was written before goes.
DELETE FROM outbox_message WHERE lane = 81 AND seq = :seq;
