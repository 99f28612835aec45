-- Many messages without an idempotency key: one array per parameter of emit.sql. They get their seq in this order.
INSERT INTO outbox_message ({columns})
SELECT {m.values}
FROM unnest({arrays}) AS m ({parameters})
