-- $1 to $12 the filter, $13 how many, $14 by when they had died, or NULL. A letter whose leg is waiting already stays
-- where it is. All of a key are due at the same moment: ties are read in the order of seq. Followers of a letter that
-- blocked wait for it as before, and are let go when it is settled. One that has expired comes back without its date:
-- otherwise it would die again at once.
WITH chosen AS (
    SELECT a.lane, a.seq, a.leg, a.id FROM outbox_dead AS a
    WHERE ($2::text IS NULL OR $2 = 'dead') AND ($14::timestamptz IS NULL OR a.dead_at <= $14)
        AND NOT EXISTS (
            SELECT 1 FROM outbox_waiting AS w WHERE w.lane = a.lane AND w.seq = a.seq AND w.leg = a.leg AND w.id = a.id)
        AND
{filter}
    ORDER BY a.lane, a.seq, a.leg, a.id LIMIT $13
), gone AS (
    DELETE FROM outbox_dead AS d USING chosen AS c
    WHERE d.lane = c.lane AND d.seq = c.seq AND d.leg = c.leg AND d.id = c.id
    RETURNING d.*
)
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, id, schema_version, available_at, expires_at, leg,
    state, topic, key, content_type, headers, aggregate_type, aggregate_id, idempotency_key, last_error, history,
    payload)
SELECT
    lane, priority, max_attempts, 0, seq, now(), created_at, id, schema_version, available_at,
    CASE WHEN expires_at > now() THEN expires_at END, leg, 'retry', topic, key, content_type, headers, aggregate_type,
    aggregate_id, idempotency_key, last_error, history, payload
FROM gone
RETURNING 1
