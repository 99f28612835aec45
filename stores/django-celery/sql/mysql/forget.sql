DELETE FROM celery_outbox_dead_letter WHERE id IN ({ids})
