-- Waiting rows that can be made due, those behind a place. Locked in the order of their place, as everybody locks them.
SELECT a.lane, a.seq, HEX(a.leg), HEX(a.id) FROM outbox_waiting AS a FORCE INDEX (PRIMARY)
WHERE a.lane >= :behind_lane
    AND (a.lane > :behind_lane OR a.seq > :behind_seq
        OR (a.seq = :behind_seq AND (a.leg > CAST(:behind_leg AS BINARY)
            OR (a.leg = CAST(:behind_leg AS BINARY) AND a.id > CONVERT(UNHEX(:behind_id) USING ascii)))))
    AND
{to_hasten}
ORDER BY a.lane, a.seq, a.leg, a.id LIMIT :limit FOR UPDATE;

UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', leg VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.leg = UNHEX(s.leg)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
    AND w.state <> 'held'
SET w.due_at = LEAST(w.due_at, UTC_TIMESTAMP(6)), w.attempts = IF(:reset, 0, w.attempts),
    w.last_error = IF(:reset, NULL, w.last_error);
