-- A waiting row has to wait (again). Its history grows when an attempt was charged or the error is a new one.
-- Parameters: lane, seq, leg, id, state, due_at, charged, error or NULL for one that is held.
UPDATE outbox_waiting
SET state = ?5, due_at = ?6, attempts = attempts + ?7, last_error = coalesce(?8, last_error),
    history = CASE WHEN ?8 IS NOT NULL AND (?7 OR last_error IS NOT ?8) THEN json_insert(
        CASE WHEN json_array_length(CASE WHEN json_valid(history) THEN history ELSE '[]' END) >= 20
            THEN json_remove(CASE WHEN json_valid(history) THEN history ELSE '[]' END, '$[0]')
            ELSE CASE WHEN json_valid(history) THEN history ELSE '[]' END END,
        '$[#]', json_object('at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'leg', ?3, 'error', ?8))
    ELSE history END
WHERE lane = ?1 AND seq = ?2 AND leg = ?3 AND id = ?4;

-- Lets a held row go at once when nothing holds it: an operator may have freed its key a moment ago. A row behind it
-- that is held, too, waits for this one and does not count. Parameters: lane, seq, leg, id, now.
UPDATE outbox_waiting AS held SET due_at = ?5
WHERE lane = ?1 AND seq = ?2 AND leg = ?3 AND id = ?4 AND state = 'held'
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS other
        WHERE other.lane = ?1 AND other.key = held.key AND other.leg IN (?3, '') AND other.seq <> ?2
            AND (other.state IN ('retry', 'down') OR (other.state = 'held' AND other.seq < ?2)))
    AND NOT EXISTS (
        SELECT 1 FROM outbox_dead AS dead
        WHERE dead.blocks AND dead.lane = ?1 AND dead.key = held.key AND dead.leg IN (?3, ''));
