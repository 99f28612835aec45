DELETE FROM celery_outbox_dead_letter WHERE id = ANY (ARRAY(
    SELECT id FROM celery_outbox_dead_letter WHERE dead_at < statement_timestamp() - make_interval(secs => $1)
    ORDER BY dead_at, id LIMIT 1000 FOR UPDATE SKIP LOCKED))
RETURNING id
