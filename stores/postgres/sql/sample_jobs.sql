-- Up to $1 jobs, by state.
SELECT state, count(*) FROM (SELECT state FROM outbox_job LIMIT $1) AS few GROUP BY state
