-- Ends a pause.
DELETE FROM outbox_control WHERE kind = :kind AND name = CAST(:name AS BINARY);

-- What waited because its topic was paused; topics as a LIKE pattern.
SELECT lane, seq, HEX(leg), HEX(id) FROM outbox_waiting
WHERE state = 'down' AND last_error = 'the topic is paused' AND due_at > UTC_TIMESTAMP(6) AND topic LIKE :topics;

-- It is due at once. What waits for a sink is found by the relay when it asks what is paused.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.leg = UNHEX(s.leg)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
    AND w.state = 'down'
SET w.due_at = LEAST(w.due_at, UTC_TIMESTAMP(6));
