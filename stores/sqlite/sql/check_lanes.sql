-- The fence: the lanes that the relay holds with their epochs, and the time; no rows if its lease is not valid. It runs
-- inside the transaction that settles, so no lane can change its owner before that ends. Parameter: owner.
SELECT lane, epoch, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) AS now
FROM outbox_lane
WHERE owner = ?1 AND EXISTS (
    SELECT 1 FROM outbox_relay
    WHERE owner = ?1 AND until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        AND until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + lease + lease / 5)
