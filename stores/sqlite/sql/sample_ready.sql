-- The oldest ready messages, by topic, with the age of the oldest in microseconds. Parameter: how many.
SELECT topic, count(*), CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - min(created_at)
FROM (SELECT substr(topic, 1, 1024) AS topic, created_at FROM outbox_message ORDER BY seq LIMIT ?1)
GROUP BY topic ORDER BY topic
