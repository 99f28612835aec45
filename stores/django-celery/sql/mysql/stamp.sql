-- A retry_after that stayed in the past would leave the row eligible while it is on its way.
UPDATE celery_outbox SET updated_at = ?, retry_after = NULL WHERE id IN ({ids})
