-- How many messages fit a filter. Parameters: the filter.
SELECT count(*) FROM outbox_all
WHERE (?2 IS NULL OR status = ?2) AND
{filter}
