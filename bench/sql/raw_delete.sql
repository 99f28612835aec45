-- Claims and settles in one autocommit statement: as fast as plain SQL can be, but rows that were not published are lost
-- when the process dies.
DELETE FROM bench_raw WHERE id IN (SELECT id FROM bench_raw ORDER BY id LIMIT 500 FOR UPDATE SKIP LOCKED)
RETURNING id, message_id, topic, payload, created_at
