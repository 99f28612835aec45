-- $1 to $12 the filter.
SELECT count(*) FROM outbox_all AS a
WHERE ($2::text IS NULL OR a.status = $2) AND
{filter}
