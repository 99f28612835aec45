-- Jobs, by state.
SELECT state, count(*) FROM (SELECT state FROM outbox_job LIMIT :bound) AS few GROUP BY state
