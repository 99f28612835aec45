-- How many messages could be made due. Parameters: those of to_retry.sql.
SELECT count(*) FROM outbox_waiting
WHERE
{to_retry}
