-- Parameters: ids as JSON (none: all), and how many.
DELETE FROM outbox_job
WHERE seq IN (
    SELECT seq FROM outbox_job
    WHERE state = 'failed' AND (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1)))
    ORDER BY seq LIMIT ?2)
