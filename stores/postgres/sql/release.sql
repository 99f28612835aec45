-- $1 owner, $2 lanes. The lock waits for settlements of this relay that are under way, so that the next owner does not
-- read what they are about to remove.
WITH me AS (
    SELECT owner FROM outbox_relay WHERE owner = $1 FOR UPDATE
)
UPDATE outbox_lane AS l
SET owner = NULL, epoch = epoch + 1,
    -- What it was working on is no suspect; what others left is.
    suspect_first = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_first END,
    suspect_last = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_last END,
    suspect_id = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_id END,
    suspect_leg = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_leg END,
    suspect_crashed_by = CASE WHEN suspect_by = $1 THEN '' ELSE suspect_crashed_by END,
    suspect_by = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_by END
FROM me WHERE l.owner = me.owner AND l.lane = ANY ($2)
