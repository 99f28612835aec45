-- Takes note that a consumer handles a message: returns its id the first time, nothing later.
INSERT INTO outbox_inbox (message_id, consumer) VALUES (?1, ?2)
ON CONFLICT (consumer, message_id) DO NOTHING RETURNING message_id
