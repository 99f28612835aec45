DELETE FROM bench_lease WHERE id = ?1 AND lease_owner = ?2
