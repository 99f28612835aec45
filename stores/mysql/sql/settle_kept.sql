-- Keeps copies of confirmed ready rows: lane, seq, sink (empty), id, and the sinks that confirmed it as a JSON array; texts
-- in hexadecimal. Other statements delete the rows.
INSERT INTO outbox_delivered (
    lane, seq, `key`, expires_at, sinks,
    {columns})
SELECT
    m.lane, m.seq, CAST(m.`key` AS BINARY), m.expires_at,
    CONVERT(UNHEX(s.sinks) USING utf8mb4),
    {m.columns}
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', id VARCHAR(72) PATH '$[3]',
    sinks LONGTEXT PATH '$[4]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY)
    ON m.lane = s.lane AND m.seq = s.seq AND CAST(m.id AS BINARY) = UNHEX(s.id)
