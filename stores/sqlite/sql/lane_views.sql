-- All lanes, who holds them, and how much is ready in them.
SELECT held.lane, held.epoch, held.owner, relay.name, relay.until, held.crashes, coalesce(counted.ready, 0)
FROM outbox_lane AS held
LEFT JOIN outbox_relay AS relay ON relay.owner = held.owner
LEFT JOIN (SELECT lane, count(*) AS ready FROM outbox_message GROUP BY lane) AS counted ON counted.lane = held.lane
ORDER BY held.lane
