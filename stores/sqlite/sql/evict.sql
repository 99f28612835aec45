-- Whether there is anything to do: asked first, because relays ask every few seconds and the write lock is everybody's.
SELECT EXISTS (
        SELECT 1 FROM outbox_relay
        WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            OR until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + lease + lease / 5)
    OR EXISTS (SELECT 1 FROM outbox_lane WHERE owner IS NOT NULL AND owner NOT IN (SELECT owner FROM outbox_relay));

-- Strikes off relays whose lease has run out, or ends further ahead than it is long.
DELETE FROM outbox_relay
WHERE until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
    OR until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + lease + lease / 5;

-- Frees the lanes of relays that are not there (any more).
UPDATE outbox_lane
-- Twenty crashes are counted.
SET owner = NULL, epoch = epoch + 1, suspect_by = NULL,
    crashed_by = substr(crashed_by || owner || ' ', -20 * 37),
    suspect_crashed_by = CASE WHEN suspect_by IS owner THEN substr(suspect_crashed_by || owner || ' ', -20 * 37)
        ELSE suspect_crashed_by END
WHERE owner IS NOT NULL AND owner NOT IN (SELECT owner FROM outbox_relay);
