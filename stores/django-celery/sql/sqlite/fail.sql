-- Only rows that this relay still holds: another relay may have taken them over as stale.
UPDATE celery_outbox
SET retries = retries + 1, updated_at = ?2, retry_after = strftime('%Y-%m-%d %H:%M:%f', ?2, ?3)
WHERE id = ?1 AND updated_at = ?4
