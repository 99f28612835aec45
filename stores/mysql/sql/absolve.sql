-- Forgets the crashes of lanes that the relay holds.
UPDATE outbox_lane SET crashes = 0 WHERE owner = :owner AND crashes > 0 AND lane IN ({lanes})
