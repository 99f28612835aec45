-- Waiting rows have to wait (again). Rows as in wait_ready. The history grows when an attempt was charged or the error is
-- a new one; it comes first, because each assignment sees those before it.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', had VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]',
    leg VARCHAR(510) PATH '$[4]', state VARCHAR(16) PATH '$[5]', delay BIGINT PATH '$[6]', charged INT PATH '$[7]',
    error LONGTEXT PATH '$[8]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.leg = UNHEX(s.had)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
SET w.history = IF(
        s.error IS NULL OR NOT (s.charged OR CAST(coalesce(w.last_error, '') AS BINARY) <> UNHEX(s.error)), w.history,
    JSON_ARRAY_APPEND(
        IF(JSON_TYPE(w.history) <> 'ARRAY', '[]',
            IF(JSON_LENGTH(w.history) >= 20, JSON_REMOVE(w.history, '$[0]'), w.history)),
        '$', JSON_OBJECT(
            'at', DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ'), 'leg', CONVERT(UNHEX(s.leg) USING utf8mb4),
            'error', CONVERT(UNHEX(s.error) USING utf8mb4)))),
    w.state = s.state,
    w.due_at = IF(
        s.state = 'held' AND w.`key` IS NOT NULL, NULL, TIMESTAMPADD(MICROSECOND, s.delay, UTC_TIMESTAMP(6))),
    w.attempts = w.attempts + s.charged,
    w.last_error = coalesce(CONVERT(UNHEX(s.error) USING utf8mb4), w.last_error);

-- Of rows that are held (lane, seq, leg, id; texts in hexadecimal), those that nothing holds: an operator may have freed their key a
-- moment ago. A row behind it that is held, too, waits for this one and does not count.
SELECT h.lane, h.seq, HEX(h.leg), HEX(h.id)
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS h FORCE INDEX (PRIMARY)
    ON h.lane = s.lane AND h.seq = s.seq AND h.leg = UNHEX(s.leg)
    AND h.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(h.id AS BINARY) = UNHEX(s.id)
WHERE h.state = 'held' AND h.due_at IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS o
        WHERE o.lane = h.lane AND o.`key` = h.`key` AND o.leg IN (h.leg, '') AND (o.seq <> h.seq OR o.id <> h.id)
            AND (o.state IN ('retry', 'down')
                OR (o.state = 'held' AND (o.seq < h.seq OR (o.seq = h.seq AND o.id < h.id)))))
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS d
        WHERE d.blocks AND d.lane = h.lane AND d.`key` = h.`key` AND d.leg IN (h.leg, ''));

-- They are due.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS h FORCE INDEX (PRIMARY)
    ON h.lane = s.lane AND h.seq = s.seq AND h.leg = UNHEX(s.leg)
    AND h.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(h.id AS BINARY) = UNHEX(s.id)
    AND h.state = 'held'
SET h.due_at = UTC_TIMESTAMP(6);
