-- $1 who, $2 filter as JSON text, $3 how many, $4 ids (none: all), $5 the audit row of the command, or NULL.
SELECT noted, affected FROM outbox_retry_jobs($1, $2::text::jsonb, $3, $4, $5)
