-- Many messages without an idempotency key, as one JSON array of arrays: the parameters of emit.sql, the payload in
-- hexadecimal because JSON has no bytes. They get their seq in this order.
INSERT INTO outbox_message ({columns})
SELECT {value.values}
FROM json_each(?1)
ORDER BY json_each.key
