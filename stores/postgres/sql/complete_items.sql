-- $1 worker, $2 items, $3 the claim's number. Returns those that were held.
DELETE FROM outbox_item
WHERE seq = ANY ($2) AND claim = $3 AND lease_owner = $1 AND state = 'running' AND lease_until > clock_timestamp()
RETURNING seq
