-- Jobs, by state. Parameter: how many.
SELECT state, count(*) FROM (SELECT state FROM outbox_job LIMIT ?1) GROUP BY state
