-- One or more messages, some with an idempotency key. Returns, for each in order, the id that holds the key.
SELECT outbox_emit({m.arguments}) AS id
FROM unnest({arrays}) AS m ({parameters})
