-- $1 owner, $2 lease in microseconds. A lease that has run out is not renewed: others may be taking its lanes already.
UPDATE outbox_relay SET until = clock_timestamp() + $2 * interval '1 microsecond'
WHERE owner = $1 AND until > clock_timestamp()
RETURNING owner
