-- $1 worker, $2 items, $3 the claim's number. Where completed items are kept. Returns those that were held.
UPDATE outbox_item SET
    state = 'completed', completed_at = now(), next_attempt_at = NULL, lease_owner = NULL, leased_at = NULL,
    lease_until = NULL
WHERE seq = ANY ($2) AND claim = $3 AND lease_owner = $1 AND state = 'running' AND lease_until > clock_timestamp()
RETURNING seq
