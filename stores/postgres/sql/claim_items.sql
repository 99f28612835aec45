-- $1 worker, $2 how many, $3 lease in microseconds.
-- Rows that another worker is claiming at this moment are passed over, so workers never wait for each other. A row that
-- was claimed since our snapshot is looked at again when it is locked, and is not due any more.
-- Materialized: joined into the update, the limit would be taken anew for every row.
WITH due AS MATERIALIZED (
    SELECT seq, next_attempt_at, attempts >= coalesce(max_attempts, outbox_item_limit()) AS is_spent,
        coalesce(expires_at <= now(), false) AS is_expired
    FROM outbox_item
    WHERE state IN ('pending', 'retry', 'running') AND next_attempt_at <= now()
    ORDER BY next_attempt_at, seq LIMIT $2
    FOR UPDATE SKIP LOCKED
), number AS MATERIALIZED (
    SELECT nextval('outbox_claim_number') AS claim
)
UPDATE outbox_item AS i SET
    state = CASE WHEN d.is_spent OR d.is_expired THEN 'failed' ELSE 'running' END,
    claim = n.claim,
    attempts = i.attempts + CASE WHEN d.is_spent OR d.is_expired THEN 0 ELSE 1 END,
    lease_owner = CASE WHEN d.is_spent OR d.is_expired THEN NULL ELSE $1 END,
    leased_at = now(),
    lease_until = now() + $3 * interval '1 microsecond',
    next_attempt_at = now() + $3 * interval '1 microsecond',
    last_error = CASE
        WHEN d.is_expired THEN 'it had expired before it was claimed'
        WHEN d.is_spent AND i.state = 'running' THEN
            'its last attempt did not end: the lease of worker ' || i.lease_owner || ' ran out'
        WHEN d.is_spent THEN coalesce(i.last_error, 'it has no attempt left')
        ELSE i.last_error END
FROM due AS d, number AS n
WHERE i.seq = d.seq
RETURNING
    i.state = 'failed', d.next_attempt_at, i.seq, i.claim, i.id, i.topic, i.payload, i.content_type, i.headers::text, i.key,
    i.aggregate_type, i.aggregate_id, i.schema_version, i.idempotency_key, i.priority, i.created_at, i.expires_at,
    i.attempts, coalesce(i.max_attempts, outbox_item_limit())
