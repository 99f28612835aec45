SELECT id FROM celery_outbox_dead_letter ORDER BY id LIMIT ?1
