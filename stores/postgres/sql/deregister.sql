-- $1 owner. Deleting the relay's row waits for its settlements, as release does. The relay is alive: it is removed from the
-- crash lists of lanes that other relays hold now.
WITH gone AS (
    DELETE FROM outbox_relay WHERE owner = $1
)
UPDATE outbox_lane
SET owner = NULLIF(owner, $1), epoch = CASE WHEN owner = $1 THEN epoch + 1 ELSE epoch END,
    crashed_by = CASE WHEN owner = $1 THEN '' ELSE replace(crashed_by, $1::uuid || ' ', '') END,
    quarantine_first = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_first END,
    quarantine_last = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_last END,
    quarantine_id = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_id END,
    quarantine_sink = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_sink END,
    quarantine_crashed_by = CASE WHEN quarantine_by = $1 THEN '' ELSE replace(quarantine_crashed_by, $1::uuid || ' ', '') END,
    quarantine_by = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_by END
WHERE owner = $1 OR strpos(crashed_by || quarantine_crashed_by, $1::uuid::text) > 0
