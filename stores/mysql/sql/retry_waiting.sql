-- Waiting rows after a position that can be made due. Locked in the order of their primary key, as all statements lock them.
SELECT a.lane, a.seq, HEX(a.sink), HEX(a.id) FROM outbox_waiting AS a FORCE INDEX (PRIMARY)
WHERE a.lane >= :behind_lane
    AND (a.lane > :behind_lane OR a.seq > :behind_seq
        OR (a.seq = :behind_seq AND (a.sink > CAST(:behind_delivery AS BINARY)
            OR (a.sink = CAST(:behind_delivery AS BINARY) AND a.id > CONVERT(UNHEX(:behind_id) USING ascii)))))
    AND
{to_retry}
ORDER BY a.lane, a.seq, a.sink, a.id LIMIT :limit FOR UPDATE;

UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', seq BIGINT PATH '$[1]', sink VARCHAR(510) PATH '$[2]', id VARCHAR(72) PATH '$[3]')) AS s
STRAIGHT_JOIN outbox_waiting AS w FORCE INDEX (PRIMARY)
    ON w.lane = s.lane AND w.seq = s.seq AND w.sink = UNHEX(s.sink)
    AND w.id = CONVERT(UNHEX(s.id) USING ascii) AND CAST(w.id AS BINARY) = UNHEX(s.id)
    AND w.state <> 'blocked'
SET w.due_at = LEAST(w.due_at, UTC_TIMESTAMP(6)), w.attempts = IF(:reset, 0, w.attempts),
    w.last_error = IF(:reset, NULL, w.last_error);
