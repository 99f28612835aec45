SELECT task_name, count(*) FROM celery_outbox_dead_letter
WHERE dead_at < COALESCE(statement_timestamp() - make_interval(secs => $1), 'infinity')
    AND created_at < COALESCE(statement_timestamp() - make_interval(secs => $2), 'infinity')
    AND task_name LIKE $3 ESCAPE '|'
GROUP BY task_name
