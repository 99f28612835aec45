-- $1 how many. Compared again in the end: a key may be taken anew while this waits for its row.
DELETE FROM outbox_dedup AS d USING (
    SELECT topic, idempotency_key FROM outbox_dedup WHERE until <= now() ORDER BY until LIMIT $1
) AS old
WHERE d.topic = old.topic AND d.idempotency_key = old.idempotency_key AND d.until <= now()
RETURNING 1
