-- Counts of rows: ready, due, waiting and not due, dead. Rows in lane 80 are scheduled.
SELECT
    (SELECT count(*) FROM outbox_message WHERE lane < 80),
    (SELECT count(*) FROM outbox_waiting WHERE due_at <= UTC_TIMESTAMP(6)),
    (SELECT count(*) FROM outbox_waiting WHERE due_at > UTC_TIMESTAMP(6) OR due_at IS NULL)
        + (SELECT count(*) FROM outbox_message WHERE lane = 80),
    (SELECT count(*) FROM outbox_dead)
