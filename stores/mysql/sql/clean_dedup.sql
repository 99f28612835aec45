-- Idempotency keys whose window is over. Locked, so that none is taken again before it is deleted.
SELECT HEX(topic), HEX(idempotency_key) FROM outbox_dedup FORCE INDEX (ix_outbox_dedup_until)
WHERE until <= UTC_TIMESTAMP(6) ORDER BY until LIMIT :limit FOR UPDATE SKIP LOCKED;

DELETE d
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (topic VARCHAR(2048) PATH '$[0]', name VARCHAR(2048) PATH '$[1]')) AS s
STRAIGHT_JOIN outbox_dedup AS d FORCE INDEX (PRIMARY) ON d.topic = UNHEX(s.topic) AND d.idempotency_key = UNHEX(s.name);
