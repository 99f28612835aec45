-- A condition that is NULL matches all rows.
DELETE FROM celery_outbox_dead_letter WHERE id = ANY (ARRAY(
    SELECT id FROM celery_outbox_dead_letter
    WHERE dead_at < COALESCE(statement_timestamp() - make_interval(secs => $1), 'infinity')
        AND created_at < COALESCE(statement_timestamp() - make_interval(secs => $2), 'infinity')
        AND task_name LIKE $3 ESCAPE '|'
    ORDER BY dead_at, id LIMIT 1000 FOR UPDATE SKIP LOCKED))
RETURNING task_name
