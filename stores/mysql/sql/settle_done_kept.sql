-- Keeps copies of confirmed waiting rows: lane, seq, sink, id, and the sinks that confirmed it as a JSON array; texts in
-- hexadecimal. Other statements delete the rows.
INSERT INTO outbox_delivered (
    lane, seq, `key`, expires_at, attempts, sinks, history,
    {columns})
SELECT
    w.lane, w.seq, w.`key`, w.expires_at,
    w.attempts, CONVERT(UNHEX(s.sinks) USING utf8mb4), IF(JSON_LENGTH(w.history) = 0, NULL, w.history),
    {w.columns}
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    sinks LONGTEXT PATH '$[4]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.sink = UNHEX(s.sink)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
