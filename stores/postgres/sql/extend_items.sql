-- $1 worker, $2 items, $3 the claim's number, $4 lease in microseconds. Returns those that are held.
-- From now on it is not among what is due, where claims would pass over it.
UPDATE outbox_item SET
    leased_at = now(), lease_until = now() + $4 * interval '1 microsecond',
    next_attempt_at = now() + $4 * interval '1 microsecond'
WHERE seq = ANY ($2) AND claim = $3 AND lease_owner = $1 AND state = 'running' AND lease_until > clock_timestamp()
RETURNING seq
