-- A retry_after in the past would leave the row eligible while it is in flight.
UPDATE celery_outbox SET updated_at = ?, retry_after = NULL WHERE id IN ({ids})
