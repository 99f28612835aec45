DELETE FROM celery_outbox_dead_letter WHERE dead_at < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
ORDER BY dead_at, id LIMIT 1000
