-- A waiting row must wait (again). Its history grows if an attempt was charged or the error is new.
-- Parameters: lane, seq, sink, id, state, due_at, charged, error (NULL if it is blocked), and its attempts when it was
-- read: an attempt is charged only if the row still has that many. A row with more was settled before, and the answer was lost.
UPDATE outbox_waiting
SET state = ?5, due_at = ?6, attempts = attempts + (?7 AND attempts = ?9), last_error = coalesce(?8, last_error),
    history = CASE WHEN ?8 IS NOT NULL AND ((?7 AND attempts = ?9) OR last_error IS NOT ?8) THEN json_insert(
        CASE WHEN json_array_length(CASE WHEN json_valid(history) THEN history ELSE '[]' END) >= 20
            THEN json_remove(CASE WHEN json_valid(history) THEN history ELSE '[]' END, '$[0]')
            ELSE CASE WHEN json_valid(history) THEN history ELSE '[]' END END,
        '$[#]', json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'sink', ?3, 'error', ?8))
    ELSE history END
WHERE lane = ?1 AND seq = ?2 AND sink = ?3 AND id = ?4;

-- Makes a blocked row due now if nothing blocks it any more: an operator may have released its key a moment ago. A blocked
-- row after it waits for this one and does not count. Parameters: lane, seq, sink, id, now.
UPDATE outbox_waiting AS held SET due_at = ?5
WHERE lane = ?1 AND seq = ?2 AND sink = ?3 AND id = ?4 AND state = 'blocked'
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS other
        WHERE other.lane = ?1 AND other.key = held.key AND other.sink IN (?3, '') AND other.seq <> ?2
            AND (other.state IN ('retry', 'deferred') OR (other.state = 'blocked' AND other.seq < ?2)))
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS dead
        WHERE dead.blocks AND dead.lane = ?1 AND dead.key = held.key AND dead.sink IN (?3, ''));
