-- Ends a pause. Parameters: kind, name.
DELETE FROM outbox_control WHERE kind = ?1 AND name = ?2;

-- Topics of messages that wait because their topic was paused. Which of them the pause meant is for the caller to say:
-- SQLite does not know its patterns.
SELECT DISTINCT topic FROM outbox_waiting WHERE state = 'down' AND last_error = 'the topic is paused';

-- These messages of a topic are due at once. What waits for a sink is found by the relay when it asks what is paused.
-- Parameter: topic.
UPDATE outbox_waiting SET due_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
WHERE state = 'down' AND last_error = 'the topic is paused' AND topic = ?1
    AND due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);
