DELETE FROM celery_outbox WHERE id = ? AND updated_at = ?
