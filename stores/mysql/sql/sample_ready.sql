-- The first ready messages, by topic, with the age of the oldest in microseconds. In the order of lanes, because MariaDB has no
-- LATERAL: a lane is a hash, so the first lanes have the same topics as the others.
SELECT few.topic, count(*), TIMESTAMPDIFF(MICROSECOND, min(few.created_at), UTC_TIMESTAMP(6))
FROM (SELECT topic, created_at FROM outbox_message WHERE lane < 80 ORDER BY lane, seq LIMIT :bound) AS few
GROUP BY few.topic ORDER BY few.topic
