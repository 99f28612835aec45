SELECT id FROM celery_outbox_dead_letter WHERE {which} ORDER BY id LIMIT ? FOR UPDATE
