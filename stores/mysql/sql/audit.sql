-- Writes down what an operator did.
INSERT INTO outbox_audit (who, action, filter, affected) VALUES (:who, :action, :filter, :affected);

-- Which row that is.
SELECT LAST_INSERT_ID();
