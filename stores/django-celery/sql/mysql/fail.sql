-- Only rows that this relay still holds: another relay may have taken them over as stale.
UPDATE celery_outbox SET retries = retries + 1, retry_after = CAST(? AS DATETIME(6)) + INTERVAL ? MICROSECOND, updated_at = ?
WHERE id = ? AND updated_at = ?
