SELECT
    (SELECT count(*) FROM outbox_message),
    (SELECT count(*) FROM outbox_waiting WHERE due_at <= now()),
    (SELECT count(*) FROM outbox_waiting WHERE due_at > now() OR due_at IS NULL),
    (SELECT count(*) FROM outbox_dead)
