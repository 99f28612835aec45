-- Where rows are that are due, in hexadecimal the leg. Without their contents, because those in hand are found again at
-- every read.
SELECT lane, seq, HEX(leg), CAST(id AS BINARY) FROM outbox_waiting FORCE INDEX (ix_outbox_waiting_due)
WHERE due_at <= UTC_TIMESTAMP(6) AND lane IN ({lanes}) AND HEX(leg) NOT IN ({legs})
ORDER BY due_at, seq LIMIT {limit};

-- Some of them.
SELECT w.lane, w.seq, HEX(w.leg), w.attempts,
    CAST(w.id AS BINARY), w.topic, w.payload, w.content_type, w.headers, w.`key`, w.aggregate_type, w.aggregate_id, w.schema_version,
    w.idempotency_key, w.priority, w.max_attempts, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.created_at),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.expires_at), coalesce(w.expires_at <= UTC_TIMESTAMP(6), false)
FROM JSON_TABLE('{rows}', '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.leg = UNHEX(s.leg)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id);
