-- The pauses of operators.
SELECT kind, name FROM outbox_control ORDER BY kind, name
