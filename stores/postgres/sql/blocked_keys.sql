-- $1 lanes.
SELECT lane, key, sink FROM outbox_waiting
WHERE lane = ANY ($1) AND key IS NOT NULL AND state IN ('retry', 'blocked', 'deferred')
UNION
SELECT lane, key, sink FROM outbox_dead WHERE lane = ANY ($1) AND key IS NOT NULL AND blocks
