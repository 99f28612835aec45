-- $1 and $2 how old delivered messages and dead letters are at least, in microseconds, or NULL; $3 whether idempotency
-- keys count; $4 how old notes of consumers are at least, or NULL.
SELECT
    (SELECT count(*) FROM outbox_delivered WHERE delivered_at <= now() - $1::bigint * interval '1 microsecond')
    + (SELECT count(*) FROM outbox_item WHERE completed_at <= now() - $1::bigint * interval '1 microsecond')
    + (SELECT count(*) FROM outbox_dead WHERE dead_at <= now() - $2::bigint * interval '1 microsecond' AND NOT blocks)
    + (SELECT count(*) FROM outbox_dedup WHERE $3 AND until <= now())
    + (SELECT count(*) FROM outbox_inbox WHERE handled_at <= now() - $4::bigint * interval '1 microsecond')
