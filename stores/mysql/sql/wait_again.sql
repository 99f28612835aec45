-- Waiting rows that must wait (again). Rows as in wait_ready, with the attempts of each row when it was read: an attempt is
-- charged only if the row still has that many. A row with more was settled before, and the answer was lost. The history grows
-- if an attempt was charged or the error is new; it comes first, because each assignment sees the previous ones.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    sink VARCHAR(510) PATH '$[4]', state VARCHAR(16) PATH '$[5]', delay BIGINT PATH '$[6]', charged INT PATH '$[7]',
    error LONGTEXT PATH '$[8]', attempts BIGINT PATH '$[9]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.sink = UNHEX(s.had)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
SET w.history = IF(
        s.error IS NULL OR NOT ((s.charged AND w.attempts = s.attempts) OR CAST(coalesce(w.last_error, '') AS BINARY) <> UNHEX(s.error)), w.history,
    JSON_ARRAY_APPEND(
        IF(JSON_TYPE(w.history) <> 'ARRAY', '[]',
            IF(JSON_LENGTH(w.history) >= 20, JSON_REMOVE(w.history, '$[0]'), w.history)),
        '$', JSON_OBJECT(
            'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'sink', CONVERT(UNHEX(s.sink) USING utf8mb4),
            'error', CONVERT(UNHEX(s.error) USING utf8mb4)))),
    w.state = s.state,
    w.due_at = IF(
        s.state = 'blocked' AND w.`key` IS NOT NULL, NULL, TIMESTAMPADD(MICROSECOND, s.delay, UTC_TIMESTAMP(6))),
    w.attempts = w.attempts + (s.charged AND w.attempts = s.attempts),
    w.last_error = coalesce(CONVERT(UNHEX(s.error) USING utf8mb4), w.last_error);

-- Of blocked rows (lane, seq, sink, id; texts in hexadecimal), those that nothing blocks any more: an operator may have
-- released their key a moment ago. A blocked row after one of them waits for it and does not count.
SELECT h.lane, h.seq, HEX(h.sink), HEX(h.id)
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS h FORCE INDEX (PRIMARY)
    ON h.lane = s.lane AND h.seq = s.seq AND h.sink = UNHEX(s.sink)
    AND h.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(h.id AS BINARY) = UNHEX(s.id)
WHERE h.state = 'blocked' AND h.due_at IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS o
        WHERE o.lane = h.lane AND o.`key` = h.`key` AND o.sink IN (h.sink, '') AND (o.seq <> h.seq OR o.id <> h.id)
            AND (o.state IN ('retry', 'deferred')
                OR (o.state = 'blocked' AND (o.seq < h.seq OR (o.seq = h.seq AND o.id < h.id)))))
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS d
        WHERE d.blocks AND d.lane = h.lane AND d.`key` = h.`key` AND d.sink IN (h.sink, ''));

-- Makes them due.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS h FORCE INDEX (PRIMARY)
    ON h.lane = s.lane AND h.seq = s.seq AND h.sink = UNHEX(s.sink)
    AND h.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(h.id AS BINARY) = UNHEX(s.id)
    AND h.state = 'blocked'
SET h.due_at = UTC_TIMESTAMP(6);
