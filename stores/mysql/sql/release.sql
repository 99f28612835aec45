-- The lock waits for settlements of this relay that are under way, so that the next owner does not read what they are
-- about to remove.
SELECT 1 FROM outbox_relay WHERE owner = :owner FOR UPDATE;

-- Gives lanes back. A new epoch, so that what was read before can no longer be settled.
UPDATE outbox_lane FORCE INDEX (PRIMARY)
-- What it was working on is no suspect; what others left is. Each assignment sees those before it.
SET owner = NULL, epoch = epoch + 1,
    suspect_first = IF(suspect_by <=> :owner, NULL, suspect_first),
    suspect_last = IF(suspect_by <=> :owner, NULL, suspect_last),
    suspect_leg = IF(suspect_by <=> :owner, NULL, suspect_leg),
    suspect_id = IF(suspect_by <=> :owner, NULL, suspect_id),
    suspect_crashed_by = IF(suspect_by <=> :owner, '', suspect_crashed_by),
    suspect_by = IF(suspect_by <=> :owner, NULL, suspect_by)
WHERE owner = :owner AND lane IN ({lanes});
