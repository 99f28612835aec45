-- The broker is down, or the task is not due: no attempt is charged.
UPDATE celery_outbox SET updated_at = ?2, retry_after = strftime('%Y-%m-%d %H:%M:%f', ?2, ?3)
WHERE id = ?1 AND updated_at = ?4
