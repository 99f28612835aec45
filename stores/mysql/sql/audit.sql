-- Writes an action of an operator to the audit.
INSERT INTO outbox_audit (login, who, action, filter, affected) VALUES (USER(), :who, :action, :filter, :affected);

-- The number of that row.
SELECT LAST_INSERT_ID();
