-- Number of messages that match the filter.
SELECT count(*) FROM outbox_all AS a
WHERE (:status IS NULL OR a.status = :status) AND
{of_dead}
    AND
{filter}
