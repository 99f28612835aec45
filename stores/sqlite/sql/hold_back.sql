-- Holds the rows of a key again that had been let go behind one that has to wait after all. A message on its schedule
-- or parked is not in the queue of its key. A row without a leg holds up every leg. Parameters: lane, key, leg, seq.
UPDATE outbox_waiting SET due_at = NULL, state = 'held'
WHERE lane = ?1 AND key = ?2 AND (?3 = '' OR leg = ?3) AND seq > ?4 AND due_at IS NOT NULL
    AND state NOT IN ('scheduled', 'parked')
