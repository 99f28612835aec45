-- Dead letters, by reason.
SELECT reason, count(*) FROM (SELECT reason FROM outbox_dead LIMIT :bound) AS few GROUP BY reason ORDER BY reason
