-- Ends a pause. Parameters: kind, name.
DELETE FROM outbox_control WHERE kind = ?1 AND name = ?2;

-- Topics of messages that are deferred because their topic was paused. The caller selects those of this pause:
-- SQLite cannot match its patterns.
SELECT DISTINCT topic FROM outbox_waiting WHERE state = 'deferred' AND last_error = 'the topic is paused';

-- Makes these messages of a topic due now. Messages deferred for a paused sink are found by the relay when it reads the pauses.
-- Parameter: topic.
UPDATE outbox_waiting SET due_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
WHERE state = 'deferred' AND last_error = 'the topic is paused' AND topic = ?1
    AND due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
