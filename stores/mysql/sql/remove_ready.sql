-- Rows (as in settle_delivered) whose deliveries were all moved to another table.
DELETE m
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_message AS m FORCE INDEX (PRIMARY)
    ON m.lane = s.lane AND m.seq = s.seq AND CAST(m.id AS BINARY) = UNHEX(s.id)
