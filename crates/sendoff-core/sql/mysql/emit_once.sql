-- One message with an idempotency key or a schedule. Returns the id that holds the key. Parameters as in emit.sql,
-- except that topic and payload come before the id, and a flag for a delay comes last.
CALL outbox_emit_at({values}, ?)
