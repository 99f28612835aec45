-- Records that a consumer handles a message. Returns the id the first time, and nothing later. It waits for a
-- concurrent transaction that handles the same message; if that one rolls back, this one is the first.
CALL outbox_inbox_once(?, ?)
