-- Waiting rows by topic, sink and status, with the age of the oldest in microseconds, from when it was available.
-- Parameter: how many.
SELECT topic, sink, status, count(*),
    CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
        - min(max(created_at, coalesce(available_at, created_at)))
FROM (
    SELECT substr(topic, 1, 1024) AS topic, sink, created_at, available_at, CASE
            WHEN state = 'deferred' THEN state
            WHEN state = 'scheduled' AND due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN state
            WHEN state = 'blocked' AND due_at IS NULL THEN 'blocked'
            WHEN attempts = 0 THEN 'pending'
            ELSE 'retry'
        END AS status
    FROM outbox_waiting LIMIT ?1
)
GROUP BY topic, sink, status ORDER BY topic, sink, status
