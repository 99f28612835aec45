-- Records that a consumer handles a message. Returns the id the first time, and nothing later. It waits for a
-- concurrent transaction that handles the same message; if that one rolls back, this one is the first.
INSERT INTO outbox_inbox (message_id, consumer) VALUES ($1::uuid, $2::text)
ON CONFLICT (consumer, message_id) DO NOTHING RETURNING message_id
