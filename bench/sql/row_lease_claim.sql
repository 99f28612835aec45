UPDATE bench_lease SET lease_owner = $1::text, lease_until = now() + interval '30 seconds'
WHERE id IN (
    SELECT id FROM bench_lease WHERE lease_until IS NULL OR lease_until < now() ORDER BY id LIMIT 500
    FOR UPDATE SKIP LOCKED)
RETURNING id, message_id, topic, payload, created_at
