-- Number of messages that match a filter. Parameters: the filter.
SELECT count(*) FROM outbox_all
WHERE (?2 IS NULL OR status = ?2) AND
{of_dead}
    AND
{filter}
