-- The lock waits for running settlements of this relay, so that the next owner does not read rows that they are
-- about to remove.
SELECT 1 FROM outbox_relay WHERE owner = :owner FOR UPDATE;

-- Releases lanes. The epoch changes, so that rows read before can no longer be settled.
UPDATE outbox_lane FORCE INDEX (PRIMARY)
-- Clears the quarantine that this relay wrote; those of other relays stay. Each assignment sees the previous ones.
SET owner = NULL, epoch = epoch + 1,
    quarantine_first = IF(quarantine_by <=> :owner, NULL, quarantine_first),
    quarantine_last = IF(quarantine_by <=> :owner, NULL, quarantine_last),
    quarantine_sink = IF(quarantine_by <=> :owner, NULL, quarantine_sink),
    quarantine_id = IF(quarantine_by <=> :owner, NULL, quarantine_id),
    quarantine_crashed_by = IF(quarantine_by <=> :owner, '', quarantine_crashed_by),
    quarantine_by = IF(quarantine_by <=> :owner, NULL, quarantine_by)
WHERE owner = :owner AND lane IN ({lanes});
