-- Blocks rows of a key again that became due behind a row that must wait after all. A scheduled or parked message
-- is not in the queue of its key. A row without a sink blocks its key at every sink. Parameters: lane, key, sink, seq.
UPDATE outbox_waiting SET due_at = NULL, state = 'blocked'
WHERE lane = ?1 AND key = ?2 AND (?3 = '' OR sink = ?3) AND seq > ?4 AND due_at IS NOT NULL
    AND state NOT IN ('scheduled', 'parked')
