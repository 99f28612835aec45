SELECT count(*) FILTER (WHERE eligible), count(*) FILTER (WHERE NOT eligible),
    (SELECT count(*) FROM celery_outbox_dead_letter),
    extract(epoch FROM statement_timestamp() - min(created_at) FILTER (WHERE eligible))::float8,
    min(id) FILTER (WHERE eligible), statement_timestamp()
FROM (
    SELECT id, created_at, schema_version BETWEEN 1 AND 1 AND (
        updated_at IS NULL OR (retry_after <= statement_timestamp() AND updated_at < retry_after)
        OR (COALESCE(retry_after <= statement_timestamp(), TRUE)
            AND updated_at <= statement_timestamp() - make_interval(secs => $1))
    ) IS TRUE AS eligible
    FROM celery_outbox
) AS rows
