-- $1 to $14 the filter, $15 to $17 as in of_dead.sql.
SELECT count(*) FROM outbox_all AS a
WHERE ($2::text IS NULL OR a.status = $2) AND
{of_dead}
    AND
{filter}
