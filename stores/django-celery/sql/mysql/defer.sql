-- The broker is down, or the task is not due: no attempt is charged.
UPDATE celery_outbox SET retry_after = CAST(? AS DATETIME(6)) + INTERVAL ? MICROSECOND, updated_at = ? WHERE id IN ({ids}) AND updated_at = ?
