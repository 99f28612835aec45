-- All lanes, their owners and their numbers of ready rows. A lease that ends further in the future than its length is not
-- valid.
SELECT held.lane, held.epoch, held.owner, relay.name,
    CASE WHEN relay.until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            + relay.lease + relay.lease / 5
        THEN relay.until END,
    length(held.crashed_by) / 37, coalesce(counted.ready, 0)
FROM outbox_lane AS held
LEFT JOIN outbox_relay AS relay ON relay.owner = held.owner
LEFT JOIN (SELECT lane, count(*) AS ready FROM outbox_message GROUP BY lane) AS counted ON counted.lane = held.lane
ORDER BY held.lane
