-- Claim and settle in one autocommit statement: as fast as SQL alone can be, and it loses what was not published when
-- the process dies.
DELETE FROM bench_raw WHERE id IN (SELECT id FROM bench_raw ORDER BY id LIMIT 500 FOR UPDATE SKIP LOCKED)
RETURNING id, message_id, topic, payload, created_at
