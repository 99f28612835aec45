SELECT COALESCE(SUM(eligible), 0), COALESCE(SUM(NOT eligible), 0), (SELECT COUNT(*) FROM celery_outbox_dead_letter),
    (julianday(?1) - julianday(MIN(CASE WHEN eligible THEN created_at END))) * 86400.0,
    MIN(CASE WHEN eligible THEN id END), (julianday(?1) - 2440587.5) * 86400.0
FROM (
    SELECT id, created_at, schema_version BETWEEN 1 AND 1 AND COALESCE(
        updated_at IS NULL OR (retry_after <= ?1 AND updated_at < retry_after)
        OR (COALESCE(retry_after <= ?1, TRUE) AND updated_at <= strftime('%Y-%m-%d %H:%M:%f', ?1, ?2)), FALSE) AS eligible
    FROM celery_outbox
) AS entries
