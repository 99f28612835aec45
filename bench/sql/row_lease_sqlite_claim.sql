UPDATE bench_lease SET lease_owner = ?1, lease_until = unixepoch() + 30
WHERE id IN (
    SELECT id FROM bench_lease WHERE lease_until IS NULL OR lease_until < unixepoch() ORDER BY id LIMIT 500)
RETURNING id, topic, payload
