-- All relays with a valid lease, in the same order for every caller.
SELECT owner, config, routes FROM outbox_relay
WHERE until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
    AND until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + lease + lease / 5
ORDER BY owner
