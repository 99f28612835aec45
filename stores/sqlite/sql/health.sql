-- The time, the approximate numbers of ready, waiting and dead rows, and for how long the oldest waiting row has been due.
-- No table is counted: a limited number of rows is read; beyond that, the number of ready rows is estimated from the first
-- and the last seq.
-- Parameters: how many rows to read.
SELECT
    CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),
    CASE WHEN ready < ?1 THEN ready
        ELSE max(ready, (SELECT max(seq) FROM outbox_message) - (SELECT min(seq) FROM outbox_message) + 1) END,
    (SELECT count(*) FROM (SELECT 1 FROM outbox_waiting LIMIT ?1)),
    (SELECT count(*) FROM (SELECT 1 FROM outbox_dead LIMIT ?1)),
    (SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - due_at FROM outbox_waiting
        WHERE due_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) ORDER BY due_at LIMIT 1)
FROM (SELECT count(*) AS ready FROM (SELECT 1 FROM outbox_message LIMIT ?1))
