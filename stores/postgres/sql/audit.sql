-- $1 who, $2 action, $3 filter as JSON text, $4 how many rows.
INSERT INTO outbox_audit (who, action, filter, affected) VALUES ($1, $2, $3::text::jsonb, $4) RETURNING id
