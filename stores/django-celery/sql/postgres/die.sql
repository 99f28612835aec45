WITH gone AS (
    DELETE FROM celery_outbox WHERE id = ANY ($1) AND updated_at = $3 RETURNING *
)
INSERT INTO celery_outbox_dead_letter (created_at, dead_at, retries, task_id, task_name, args, kwargs, options,
    sentry_trace_id, sentry_baggage, structlog_context, schema_version, redacted_args, redacted_kwargs, failure_reason)
SELECT gone.created_at, statement_timestamp(), gone.retries, gone.task_id, gone.task_name, gone.args, gone.kwargs,
    gone.options, gone.sentry_trace_id, gone.sentry_baggage, gone.structlog_context, gone.schema_version,
    gone.redacted_args, gone.redacted_kwargs, dead.reason
FROM gone JOIN unnest($1::bigint[], $2::text[]) AS dead (id, reason) ON dead.id = gone.id
ORDER BY gone.id
