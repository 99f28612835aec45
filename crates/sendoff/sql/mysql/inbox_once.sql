-- Takes note that a consumer handles a message: returns its id the first time, nothing later. A concurrent transaction
-- that handles the same message is waited for; if it rolls back, this one is the first.
CALL outbox_inbox_once(?, ?)
