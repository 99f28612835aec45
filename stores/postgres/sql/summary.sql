SELECT
    (SELECT count(*) FROM outbox_message),
    (SELECT count(*) FROM outbox_waiting),
    (SELECT count(*) FROM outbox_waiting WHERE attempts > 0),
    (SELECT count(*) FROM outbox_dead),
    (SELECT count(*) FROM outbox_delivered),
    (SELECT (extract(epoch FROM now() - min(created_at)) * 1000000)::bigint FROM outbox_message)
