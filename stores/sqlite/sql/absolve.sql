-- Forgets the crashes of lanes that the relay holds. Parameters: owner, lanes.
UPDATE outbox_lane SET crashes = 0
WHERE owner = ?1 AND crashes <> 0 AND lane IN (SELECT value FROM json_each(?2))
