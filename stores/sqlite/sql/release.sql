-- Gives lanes back. A new epoch, so that what was read before can no longer be settled. Parameters: owner, lanes.
UPDATE outbox_lane
-- What it was working on is no suspect; what others left is.
SET owner = NULL, epoch = epoch + 1,
    suspect_first = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_first END,
    suspect_last = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_last END,
    suspect_id = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_id END,
    suspect_leg = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_leg END,
    suspect_crashed_by = CASE WHEN suspect_by IS ?1 THEN '' ELSE suspect_crashed_by END,
    suspect_by = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_by END
WHERE owner = ?1 AND lane IN (SELECT value FROM json_each(?2))
