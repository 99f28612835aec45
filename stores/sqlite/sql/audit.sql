-- Writes an action of an operator to the audit. Parameters: who, action, filter, affected.
INSERT INTO outbox_audit (who, action, filter, affected) VALUES (?1, ?2, ?3, ?4)
