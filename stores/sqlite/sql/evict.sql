-- Whether there is anything to do: asked first, because relays ask every few seconds and the write lock is everybody's.
-- Parameter: retention in microseconds.
SELECT EXISTS (SELECT 1 FROM outbox_relay WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    OR EXISTS (SELECT 1 FROM outbox_lane WHERE owner IS NOT NULL AND owner NOT IN (SELECT owner FROM outbox_relay))
    OR EXISTS (SELECT 1 FROM outbox_dedup WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
    OR EXISTS (
        SELECT 1 FROM outbox_delivered
        WHERE delivered_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1);

-- Strikes off relays whose lease has run out.
DELETE FROM outbox_relay WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);

-- Frees the lanes of relays that are not there (any more).
UPDATE outbox_lane
SET owner = NULL, epoch = epoch + 1, crashes = crashes + 1,
    suspect_crashes = suspect_crashes + (suspect_seq IS NOT NULL)
WHERE owner IS NOT NULL AND owner NOT IN (SELECT owner FROM outbox_relay);

-- Idempotency keys whose window is over. Some at a time: nobody may wait long for the write lock.
DELETE FROM outbox_dedup WHERE (topic, idempotency_key) IN (
    SELECT topic, idempotency_key FROM outbox_dedup
    WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) ORDER BY until LIMIT 1000);

-- Delivered messages that were kept long enough. Parameters: retention in microseconds, how many at most.
DELETE FROM outbox_delivered WHERE rowid IN (
    SELECT rowid FROM outbox_delivered
    WHERE delivered_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1
    ORDER BY delivered_at LIMIT ?2);
