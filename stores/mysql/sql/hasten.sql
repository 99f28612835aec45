-- Waiting rows that fit the filter, oldest first. What is due already is left alone, so that asking again goes on behind
-- it; a held row waits for its turn, whoever asks.
SELECT a.lane, a.seq, HEX(a.leg) FROM outbox_waiting AS a
WHERE (:status IS NULL OR :status = CASE WHEN a.attempts = 0 THEN 'pending' ELSE 'retry' END)
    AND a.state <> 'held'
    AND (a.due_at > UTC_TIMESTAMP(6) OR (:reset AND (a.attempts > 0 OR a.last_error IS NOT NULL)))
    AND
{filter}
ORDER BY a.lane, a.seq, a.leg LIMIT :limit FOR UPDATE;

UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.leg = UNHEX(s.leg) AND w.state <> 'held'
SET w.due_at = LEAST(w.due_at, UTC_TIMESTAMP(6)), w.attempts = IF(:reset, 0, w.attempts),
    w.last_error = IF(:reset, NULL, w.last_error);
