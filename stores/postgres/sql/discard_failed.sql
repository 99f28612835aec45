-- As in retry_failed.sql.
SELECT noted, affected FROM outbox_discard_jobs($1, $2::text::jsonb, $3, $4, $5)
