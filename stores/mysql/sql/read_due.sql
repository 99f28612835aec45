-- Positions of due rows, the sink in hexadecimal. Without their contents, because rows in flight are found again at
-- every read.
SELECT lane, seq, HEX(sink), CAST(id AS BINARY) FROM outbox_waiting FORCE INDEX (ix_outbox_waiting_due)
WHERE due_at <= UTC_TIMESTAMP(6) AND lane IN ({lanes}) AND HEX(sink) NOT IN ({deliveries})
ORDER BY due_at, seq LIMIT {limit};

-- The contents of some of them.
SELECT w.lane, w.seq, HEX(w.sink) AS sink, w.attempts, coalesce(w.expires_at <= UTC_TIMESTAMP(6), false) AS expired,
    {w.contents}
FROM JSON_TABLE('{rows}', '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.sink = UNHEX(s.sink)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id);
