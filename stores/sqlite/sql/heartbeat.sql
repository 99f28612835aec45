-- Renews a lease that has not expired: after that, other relays may be taking its lanes. A lease that ends too far in the
-- future, because the clock was set back, is renewed, too. Parameters: owner, lease in microseconds.
UPDATE outbox_relay SET until = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?2, lease = ?2
WHERE owner = ?1 AND until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
