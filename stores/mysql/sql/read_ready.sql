-- Positions of the ready rows, if there are not too many: one snapshot of all lanes, from the first row of each. The decision
-- on the reader explains why every read starts at the beginning of a lane. With ids: after a failover
-- another message may have a number that is in flight.
SELECT lane, seq, CAST(id AS BINARY) FROM outbox_message FORCE INDEX (PRIMARY)
WHERE lane IN ({lanes}) ORDER BY lane, seq LIMIT {limit};

-- The first rows of one lane. All lanes are combined with UNION ALL into one statement, so that they share a snapshot.
(SELECT lane, seq, CAST(id AS BINARY) FROM outbox_message FORCE INDEX (PRIMARY)
    WHERE lane = {lane} ORDER BY seq LIMIT {limit});

-- The contents of some rows. The relay holds their lanes, so they still exist.
SELECT m.lane, m.seq, '' AS sink, 0 AS attempts, coalesce(m.expires_at <= UTC_TIMESTAMP(6), false) AS expired,
    {m.contents}
FROM JSON_TABLE('{rows}', '$[*]' COLUMNS (lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY) ON m.lane = s.lane AND m.seq = s.seq;

-- Rows in the lanes that no relay leases, locked: scheduled messages and duplicates.
SELECT lane, seq FROM outbox_message FORCE INDEX (PRIMARY)
WHERE lane IN (80, 81) ORDER BY lane, seq LIMIT 500 FOR UPDATE SKIP LOCKED;

-- Moves a scheduled message to outbox_waiting.
CALL outbox_file(:seq);

-- Deletes a duplicate.
DELETE FROM outbox_message WHERE lane = 81 AND seq = :seq;
