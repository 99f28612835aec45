DELETE FROM celery_outbox_dead_letter WHERE id IN (
    SELECT id FROM celery_outbox_dead_letter WHERE dead_at < strftime('%Y-%m-%d %H:%M:%f', 'now', ?1)
    ORDER BY dead_at, id LIMIT 1000)
