SELECT task_name, SUM(retries) FROM celery_outbox WHERE retries > 0 GROUP BY task_name ORDER BY 2 DESC, 1 LIMIT ?1
