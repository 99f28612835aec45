-- Releases lanes. The epoch changes, so that rows read before can no longer be settled. Parameters: owner, lanes.
UPDATE outbox_lane
-- Clears the quarantine that this relay wrote; those of other relays stay.
SET owner = NULL, epoch = epoch + 1,
    quarantine_first = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_first END,
    quarantine_last = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_last END,
    quarantine_id = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_id END,
    quarantine_sink = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_sink END,
    quarantine_crashed_by = CASE WHEN quarantine_by IS ?1 THEN '' ELSE quarantine_crashed_by END,
    quarantine_by = CASE WHEN quarantine_by IS ?1 THEN NULL ELSE quarantine_by END
WHERE owner = ?1 AND lane IN (SELECT value FROM json_each(?2))
