-- $1 worker, $2 items, $3 the claim's number. Returns those that were not held.
SELECT outbox_complete_items($1, $2, $3)
