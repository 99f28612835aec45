-- How many keys are blocked: by up to $1 dead letters, or with followers among up to $1 waiting rows.
SELECT count(*) FROM (
    SELECT few.lane, few.key, few.sink FROM (SELECT lane, key, sink, state, due_at FROM outbox_waiting LIMIT $1) AS few
    WHERE few.key IS NOT NULL AND few.state = 'blocked' AND few.due_at IS NULL
    UNION
    (SELECT lane, key, sink FROM outbox_dead WHERE key IS NOT NULL AND blocks LIMIT $1)
) AS blocked
