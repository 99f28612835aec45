-- Lanes that no live relay holds.
SELECT lane FROM outbox_lane AS held
WHERE NOT EXISTS (
    SELECT 1 FROM outbox_relay AS relay WHERE relay.owner = held.owner
        AND relay.until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        AND relay.until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            + relay.lease + relay.lease / 5)
ORDER BY lane
