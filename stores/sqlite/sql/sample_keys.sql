-- How many keys are blocked: by dead letters, or with followers among some waiting rows. Parameter: how many rows.
SELECT count(*) FROM (
    SELECT lane, key, sink FROM (SELECT lane, key, sink, state, due_at FROM outbox_waiting LIMIT ?1)
    WHERE key IS NOT NULL AND state = 'blocked' AND due_at IS NULL
    UNION
    SELECT lane, key, sink FROM (SELECT lane, key, sink FROM outbox_dead WHERE blocks AND key IS NOT NULL LIMIT ?1)
)
