-- As in retry_dead.sql.
SELECT noted, affected FROM outbox_discard_dead($1, $2::text::jsonb, $3, $4, $5)
