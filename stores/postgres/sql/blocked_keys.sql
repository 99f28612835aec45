-- $1 lanes.
SELECT lane, key, leg FROM outbox_waiting
WHERE lane = ANY ($1) AND key IS NOT NULL AND state IN ('retry', 'held', 'down')
UNION
SELECT lane, key, leg FROM outbox_dead WHERE lane = ANY ($1) AND key IS NOT NULL AND blocks
