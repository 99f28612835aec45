-- Dead letters, by reason. Parameter: how many.
SELECT reason, count(*) FROM (SELECT reason FROM outbox_dead LIMIT ?1) GROUP BY reason ORDER BY reason
