-- Counts of rows: ready, due, waiting and not due, dead.
SELECT
    (SELECT count(*) FROM outbox_message),
    (SELECT count(*) FROM outbox_waiting WHERE due_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    (SELECT count(*) FROM outbox_waiting
        WHERE due_at IS NULL OR due_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
    (SELECT count(*) FROM outbox_dead)
