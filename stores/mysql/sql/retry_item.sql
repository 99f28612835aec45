-- Whether a held item has no attempt left; no row when it is not held.
SELECT attempts >= coalesce(max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'item_max_attempts'), 5) FROM outbox_item
WHERE seq = :seq AND claim = :claim AND lease_owner = CAST(:worker AS BINARY) AND state = 'running'
    AND lease_until > UTC_TIMESTAMP(6)
FOR UPDATE;

UPDATE outbox_item
SET state = IF(:failed, 'failed', 'retry'), lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    next_attempt_at = IF(:failed, NULL, UTC_TIMESTAMP(6) + INTERVAL :delay MICROSECOND), last_error = :error
WHERE seq = :seq;
