-- Up to $1 dead letters, by reason.
SELECT reason, count(*) FROM (SELECT reason FROM outbox_dead LIMIT $1) AS few GROUP BY reason ORDER BY reason
