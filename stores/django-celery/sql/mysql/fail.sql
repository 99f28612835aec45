-- Only what this relay still holds: another one may have taken it over as stale.
UPDATE celery_outbox SET retries = retries + 1, retry_after = CAST(? AS DATETIME(6)) + INTERVAL ? MICROSECOND, updated_at = ?
WHERE id = ? AND updated_at = ?
