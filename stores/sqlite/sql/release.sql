-- Gives lanes back. A new epoch, so that what was read before can no longer be settled. Parameters: owner, lanes.
UPDATE outbox_lane
SET owner = NULL, epoch = epoch + 1, suspect_seq = NULL, suspect_id = NULL, suspect_leg = NULL, suspect_crashes = 0
WHERE owner = ?1 AND lane IN (SELECT value FROM json_each(?2))
