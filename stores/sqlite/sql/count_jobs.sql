SELECT state, count(*) FROM outbox_job GROUP BY state
