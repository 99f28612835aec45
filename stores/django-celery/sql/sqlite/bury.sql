DELETE FROM celery_outbox WHERE id = ?1 AND updated_at = ?2
