-- $1 to $14 as in to_hasten.sql.
SELECT count(*) FROM outbox_waiting AS a
WHERE
{to_hasten}
