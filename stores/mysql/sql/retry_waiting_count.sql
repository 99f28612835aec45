-- How many messages could be made due.
SELECT count(*) FROM outbox_waiting AS a
WHERE
{to_retry}
