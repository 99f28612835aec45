-- $1 owner, $2 lanes. The lock waits for running settlements of this relay, so that the next owner does not
-- read rows that they are about to remove.
WITH me AS (
    SELECT owner FROM outbox_relay WHERE owner = $1 FOR UPDATE
)
UPDATE outbox_lane AS l
SET owner = NULL, epoch = epoch + 1,
    -- Clears the quarantine that this relay wrote; those of other relays stay.
    quarantine_first = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_first END,
    quarantine_last = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_last END,
    quarantine_id = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_id END,
    quarantine_sink = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_sink END,
    quarantine_crashed_by = CASE WHEN quarantine_by = $1 THEN '' ELSE quarantine_crashed_by END,
    quarantine_by = CASE WHEN quarantine_by = $1 THEN NULL ELSE quarantine_by END
FROM me WHERE l.owner = me.owner AND l.lane = ANY ($2)
