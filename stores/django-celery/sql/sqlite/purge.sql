-- A condition that is NULL matches all rows.
DELETE FROM celery_outbox_dead_letter WHERE id IN (
    SELECT id FROM celery_outbox_dead_letter
    WHERE dead_at < COALESCE(strftime('%Y-%m-%d %H:%M:%f', 'now', ?1), '9999-12-31')
        AND created_at < COALESCE(strftime('%Y-%m-%d %H:%M:%f', 'now', ?2), '9999-12-31')
        AND task_name GLOB ?3
    ORDER BY dead_at, id LIMIT 1000)
RETURNING task_name
