DELETE FROM bench_lease WHERE id = ANY ($1::bigint[]) AND lease_owner = $2::text
