-- Records that a consumer handles a message. Returns the id the first time, and nothing later.
INSERT INTO outbox_inbox (message_id, consumer) VALUES (?1, ?2)
ON CONFLICT (consumer, message_id) DO NOTHING RETURNING message_id
