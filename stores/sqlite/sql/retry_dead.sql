-- Dead letters that fit a filter and do not wait already. Parameters: the filter, by when they had died, or NULL.
-- Followers of one that blocked wait for it as before, and are let go when it is settled.
SELECT rowid FROM outbox_dead AS dead
WHERE (?2 IS NULL OR ?2 = 'dead') AND (?13 IS NULL OR dead_at <= ?13)
    AND NOT EXISTS (
        SELECT 1 FROM outbox_waiting AS waiting
        WHERE waiting.lane = dead.lane AND waiting.seq = dead.seq AND waiting.leg = dead.leg
            AND waiting.id = dead.id)
    AND
{filter}
ORDER BY seq, leg, id;

-- Brings one back, unless it waits already. Without its date if it has expired: otherwise it would die again at
-- once. Parameter: its rowid.
INSERT INTO outbox_waiting (
    lane, priority, max_attempts, attempts, seq, due_at, created_at, leg, state, last_error, history,
    id, schema_version, available_at, expires_at, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload)
SELECT
    lane, priority, max_attempts, 0, seq, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),
    created_at, leg, 'retry', last_error, history,
    id, schema_version, available_at,
    CASE WHEN expires_at > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) THEN expires_at END, topic, key, content_type, headers,
    aggregate_type, aggregate_id, idempotency_key, payload
FROM outbox_dead
WHERE rowid = ?1
ON CONFLICT (lane, seq, leg, id) DO NOTHING;

-- Takes it out of the dead letters.
DELETE FROM outbox_dead WHERE rowid = ?1;
