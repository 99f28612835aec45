WITH locked AS (
    SELECT id FROM celery_outbox_dead_letter WHERE $1::bigint[] IS NULL OR id = ANY ($1) ORDER BY id LIMIT $2 FOR UPDATE
), gone AS (
    DELETE FROM celery_outbox_dead_letter WHERE id = ANY (ARRAY(SELECT id FROM locked)) RETURNING *
)
INSERT INTO celery_outbox (created_at, retries, task_id, task_name, args, kwargs, options, sentry_trace_id,
    sentry_baggage, structlog_context, schema_version, redacted_args, redacted_kwargs)
SELECT statement_timestamp(), 0, task_id, task_name, args, kwargs, options, sentry_trace_id, sentry_baggage,
    structlog_context, schema_version, redacted_args, redacted_kwargs
FROM gone ORDER BY id
RETURNING id
