-- A condition that is NULL matches all rows. Names are case-sensitive, whatever the table's collation.
SELECT id, task_name FROM celery_outbox_dead_letter
WHERE dead_at < COALESCE(UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND, TIMESTAMP'9999-12-31 00:00:00')
    AND created_at < COALESCE(UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND, TIMESTAMP'9999-12-31 00:00:00')
    AND task_name LIKE (? COLLATE utf8mb4_bin) ESCAPE '|'
ORDER BY dead_at, id LIMIT 1000 FOR UPDATE SKIP LOCKED
