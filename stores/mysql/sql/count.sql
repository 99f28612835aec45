-- How many messages fit the filter.
SELECT count(*) FROM outbox_all AS a
WHERE (:status IS NULL OR a.status = :status) AND
{filter}
