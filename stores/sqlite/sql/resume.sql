-- Ends a pause. Parameters: kind, name.
DELETE FROM outbox_control WHERE kind = ?1 AND name = ?2;

-- What waited because its topic was paused is due at once. Parameter: topics as a GLOB.
UPDATE outbox_waiting SET due_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
WHERE state = 'down' AND last_error = 'the topic is paused' AND topic GLOB ?1
    AND due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
