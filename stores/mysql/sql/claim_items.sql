-- What is due, in the order of claiming, and why an item cannot be handed out. Large payloads are left out. Rows that another worker is claiming at this
-- moment are passed over, so workers never wait for each other.
SELECT
    seq, id, topic, IF(OCTET_LENGTH(payload) <= :inline, payload, NULL), content_type, headers, `key`, aggregate_type, aggregate_id, schema_version,
    idempotency_key, priority, TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00.000000', created_at),
    TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00.000000', expires_at), attempts + 1,
    coalesce(max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'item_max_attempts'), 5),
    CASE
        WHEN expires_at <= UTC_TIMESTAMP(6) THEN 'it had expired before it was claimed'
        WHEN attempts < coalesce(max_attempts, (
        SELECT CAST(value AS SIGNED) FROM outbox_setting WHERE name = 'item_max_attempts'), 5) THEN NULL
        WHEN state = 'running' THEN 'its last attempt did not end: the lease of its worker ran out'
        ELSE coalesce(last_error, 'it has no attempt left')
    END,
    OCTET_LENGTH(payload)
FROM outbox_item FORCE INDEX (ix_outbox_item_due)
WHERE next_attempt_at <= UTC_TIMESTAMP(6)
ORDER BY next_attempt_at, seq LIMIT :limit FOR UPDATE SKIP LOCKED;

-- Hands out what was locked: seq, and the number of the hand-out.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', claim BIGINT PATH '$[1]')) AS s
STRAIGHT_JOIN outbox_item AS i FORCE INDEX (PRIMARY) ON i.seq = s.seq
SET i.state = 'running', i.claim = s.claim, i.attempts = i.attempts + 1, i.lease_owner = CAST(:worker AS BINARY),
    i.leased_at = UTC_TIMESTAMP(6), i.lease_until = UTC_TIMESTAMP(6) + INTERVAL :lease MICROSECOND,
    i.next_attempt_at = UTC_TIMESTAMP(6) + INTERVAL :lease MICROSECOND;

-- Gives up what was locked and cannot be handed out.
UPDATE outbox_item
SET state = 'failed', claim = :claim, lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    next_attempt_at = NULL, last_error = :error
WHERE seq = :seq;

-- A payload that was left out.
SELECT payload FROM outbox_item WHERE seq = :seq;
