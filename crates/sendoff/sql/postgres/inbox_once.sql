-- Takes note that a consumer handles a message: returns its id the first time, nothing later. A concurrent transaction
-- that handles the same message is waited for; if it rolls back, this one is the first.
INSERT INTO outbox_inbox (message_id, consumer) VALUES ($1::uuid, $2::text)
ON CONFLICT (consumer, message_id) DO NOTHING RETURNING message_id
