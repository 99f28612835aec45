-- Many messages without an idempotency key or a schedule, as one JSON array of arrays: the parameters of emit.sql, the
-- payload in hexadecimal because JSON has no bytes. They get their seq in this order.
INSERT INTO outbox_message ({m.columns})
SELECT {m.values}
FROM JSON_TABLE(?, '$[*]' COLUMNS (place FOR ORDINALITY, {table})) AS m
ORDER BY m.place
