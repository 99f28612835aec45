-- The lock waits for settlements of this relay that are under way, so that the next owner does not read what they are
-- about to remove.
SELECT 1 FROM outbox_relay WHERE owner = :owner FOR UPDATE;

-- Gives lanes back. A new epoch, so that what was read before can no longer be settled.
UPDATE outbox_lane FORCE INDEX (PRIMARY)
SET owner = NULL, epoch = epoch + 1, suspect_seq = NULL, suspect_leg = NULL, suspect_id = NULL,
    suspect_crashes = 0
WHERE owner = :owner AND lane IN ({lanes});
