-- Whether there is anything to do: asked first, because relays ask every few seconds and share the write lock.
SELECT EXISTS (
        SELECT 1 FROM outbox_relay
        WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            OR until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + lease + lease / 5)
    OR EXISTS (SELECT 1 FROM outbox_lane WHERE owner IS NOT NULL AND owner NOT IN (SELECT owner FROM outbox_relay));

-- Deletes relays whose lease has expired, or ends further in the future than its length.
DELETE FROM outbox_relay
WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
    OR until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + lease + lease / 5;

-- Frees the lanes of relays that do not exist (any more).
UPDATE outbox_lane
-- At most twenty crashes.
SET owner = NULL, epoch = epoch + 1, quarantine_by = NULL,
    crashed_by = substr(crashed_by || owner || ' ', -20 * 37),
    quarantine_crashed_by = CASE WHEN quarantine_by IS owner THEN substr(quarantine_crashed_by || owner || ' ', -20 * 37)
        ELSE quarantine_crashed_by END
WHERE owner IS NOT NULL AND owner NOT IN (SELECT owner FROM outbox_relay);
