-- $1 owner, $2 lease in microseconds. A lease that has run out is not renewed: others may be taking its lanes already. One
-- that is too far ahead, because the clock has stepped back, is: its owner lives.
UPDATE outbox_relay SET until = clock_timestamp() + $2 * interval '1 microsecond', lease = $2
WHERE owner = $1 AND until > clock_timestamp()
RETURNING owner
