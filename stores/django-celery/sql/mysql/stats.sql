SELECT CAST(COALESCE(SUM(eligible), 0) AS SIGNED), CAST(COALESCE(SUM(NOT eligible), 0) AS SIGNED),
    (SELECT COUNT(*) FROM celery_outbox_dead_letter),
    TIMESTAMPDIFF(MICROSECOND, MIN(IF(eligible, created_at, NULL)), UTC_TIMESTAMP(6)),
    MIN(IF(eligible, id, NULL)), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
FROM (
    SELECT id, created_at, COALESCE(schema_version BETWEEN 1 AND 1 AND (
        updated_at IS NULL OR (retry_after <= ? AND updated_at < retry_after)
        OR ((retry_after IS NULL OR retry_after <= ?) AND updated_at <= CAST(? AS DATETIME(6)) - INTERVAL ? MICROSECOND)
    ), FALSE) AS eligible
    FROM celery_outbox
) AS entries
