-- Deleting the relay's row waits for its settlements, as release does.
DELETE FROM outbox_relay WHERE owner = :owner;

-- Clears the quarantine that this relay wrote; those of other relays stay. Each assignment sees the previous ones.
UPDATE outbox_lane
SET owner = NULL, epoch = epoch + 1, crashed_by = '',
    quarantine_first = IF(quarantine_by <=> :owner, NULL, quarantine_first),
    quarantine_last = IF(quarantine_by <=> :owner, NULL, quarantine_last),
    quarantine_sink = IF(quarantine_by <=> :owner, NULL, quarantine_sink),
    quarantine_id = IF(quarantine_by <=> :owner, NULL, quarantine_id),
    quarantine_crashed_by = IF(quarantine_by <=> :owner, '', quarantine_crashed_by),
    quarantine_by = IF(quarantine_by <=> :owner, NULL, quarantine_by)
WHERE owner = :owner;

-- Lanes that list it as crashed. Not locked here, because other relays work on them.
SELECT lane FROM outbox_lane WHERE LOCATE(:owner, crashed_by) > 0 OR LOCATE(:owner, quarantine_crashed_by) > 0;

-- The relay is alive: it is removed from the crash lists.
UPDATE outbox_lane FORCE INDEX (PRIMARY)
SET crashed_by = REPLACE(crashed_by, CONCAT(:owner, ','), ''),
    quarantine_crashed_by = REPLACE(quarantine_crashed_by, CONCAT(:owner, ','), '')
WHERE lane IN ({lanes});
