-- $1 kind, $2 name, $3 topics as a LIKE pattern. What waited because its topic was paused is due at once; what waits for
-- a sink is found by the relay when it asks what is paused.
WITH ended AS (
    DELETE FROM outbox_control WHERE kind = $1 AND name = $2 RETURNING kind
), woken AS (
    UPDATE outbox_waiting SET due_at = now()
    WHERE state = 'down' AND last_error = 'the topic is paused' AND due_at > now() AND topic LIKE $3
        AND EXISTS (SELECT 1 FROM ended WHERE kind = 'topic')
)
SELECT kind FROM ended
