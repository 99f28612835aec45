-- Ends a pause.
DELETE FROM outbox_control WHERE kind = :kind AND name = CAST(:name AS BINARY);

-- Messages that are deferred because their topic was paused; topics as a LIKE pattern.
SELECT lane, seq, HEX(sink), HEX(id) FROM outbox_waiting
WHERE state = 'deferred' AND last_error = 'the topic is paused' AND due_at > UTC_TIMESTAMP(6) AND topic LIKE :topics;

-- Makes them due now. Messages deferred for a paused sink are found by the relay when it reads the pauses.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.sink = UNHEX(s.sink)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
    AND w.state = 'deferred'
SET w.due_at = LEAST(w.due_at, UTC_TIMESTAMP(6));
