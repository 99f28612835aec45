-- Renews a lease that has not run out: once it has, another relay may have begun to take the lanes. One that ends too far
-- ahead, because the clock was set back, is its owner's to renew. Parameters: owner, lease in microseconds.
UPDATE outbox_relay SET until = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + ?2, lease = ?2
WHERE owner = ?1 AND until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
