-- Summary: ready, waiting, waiting after a failure, dead, delivered (all deliveries, but for ready messages), age of the oldest ready message and of the
-- oldest waiting one that is due and never failed.
SELECT
    (SELECT count(*) FROM outbox_message),
    (SELECT count(*) FROM outbox_waiting),
    (SELECT count(*) FROM outbox_waiting WHERE attempts > 0),
    (SELECT count(*) FROM outbox_dead),
    (SELECT coalesce(sum(json_array_length(sinks)), 0) FROM outbox_delivered),
    (SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - created_at FROM outbox_message
        ORDER BY seq LIMIT 1),
    (SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - min(created_at) FROM outbox_waiting
        WHERE attempts = 0 AND (state <> 'scheduled'
            OR due_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)))
