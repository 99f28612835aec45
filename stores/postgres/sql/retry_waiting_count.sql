-- $1 to $16 as in to_retry.sql.
SELECT count(*) FROM outbox_waiting AS a
WHERE
{to_retry}
