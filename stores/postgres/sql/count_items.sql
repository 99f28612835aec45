SELECT state, count(*) FROM outbox_item GROUP BY state
