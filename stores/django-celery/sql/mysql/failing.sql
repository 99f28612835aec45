SELECT task_name, CAST(SUM(retries) AS SIGNED) FROM celery_outbox WHERE retries > 0 GROUP BY task_name ORDER BY 2 DESC, 1 LIMIT ?
