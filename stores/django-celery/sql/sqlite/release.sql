-- As if it had never been claimed: eligible for every relay now.
UPDATE celery_outbox SET updated_at = NULL, retry_after = NULL WHERE id = ?1 AND updated_at = ?2
