-- $1 owner, $2 lease in microseconds. An expired lease is not renewed: other relays may be taking its lanes already. A lease
-- that ends too far in the future, because the clock stepped back, is renewed: its owner is alive.
UPDATE outbox_relay SET until = clock_timestamp() + $2 * interval '1 microsecond', lease = $2
WHERE owner = $1 AND until > clock_timestamp()
RETURNING owner
