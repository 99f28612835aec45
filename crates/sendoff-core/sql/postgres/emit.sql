-- One message without an idempotency key. The parameters have the same order in every emit statement.
INSERT INTO outbox_message ({columns})
VALUES ({values})
