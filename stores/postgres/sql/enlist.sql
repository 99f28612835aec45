-- $1 owner, $2 name, $3 lease in microseconds. A second call of the same owner renews.
INSERT INTO outbox_relay (owner, name, until, lease)
VALUES ($1, $2, clock_timestamp() + $3 * interval '1 microsecond', $3)
ON CONFLICT (owner) DO UPDATE SET name = excluded.name, until = excluded.until, lease = excluded.lease
