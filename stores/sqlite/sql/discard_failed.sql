-- Parameters: ids as JSON, none for all, and how many.
DELETE FROM outbox_item
WHERE seq IN (
    SELECT seq FROM outbox_item
    WHERE state = 'failed' AND (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1)))
    ORDER BY seq LIMIT ?2)
