-- $1 owner, $2 lanes. The lock waits for settlements of this relay that are under way, so that the next owner does not
-- read what they are about to remove.
WITH me AS (
    SELECT owner FROM outbox_relay WHERE owner = $1 FOR UPDATE
)
UPDATE outbox_lane AS l
SET owner = NULL, epoch = epoch + 1, suspect_seq = NULL, suspect_id = NULL, suspect_leg = NULL, suspect_crashes = 0
FROM me WHERE l.owner = me.owner AND l.lane = ANY ($2)
