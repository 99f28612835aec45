-- Releases all lanes of a relay at a clean stop. Parameter: owner.
UPDATE outbox_lane
-- Clears the quarantine that this relay wrote; those of other relays stay.
SET owner = NULL, epoch = epoch + 1, crashed_by = '',
    quarantine_first = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_first END,
    quarantine_last = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_last END,
    quarantine_id = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_id END,
    quarantine_sink = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_sink END,
    quarantine_crashed_by = CASE WHEN quarantine_by IS ?1 THEN '' ELSE quarantine_crashed_by END,
    quarantine_by = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_by END
WHERE owner = ?1;

-- The relay is alive: it is removed from the crash lists of lanes that other relays hold now.
UPDATE outbox_lane
SET crashed_by = replace(crashed_by, ?1 || ' ', ''), quarantine_crashed_by = replace(quarantine_crashed_by, ?1 || ' ', '')
WHERE instr(crashed_by || quarantine_crashed_by, ?1) > 0;

DELETE FROM outbox_relay WHERE owner = ?1;
