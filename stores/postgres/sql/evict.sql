-- A relay with a running settlement holds a lock on its row: it is skipped, and evicted the next time, or once that
-- settlement is ended (outbox_end_settlements).
-- The lanes are found first and compared again by owner, so that a lane with a new owner is left alone.
WITH gone AS (
    DELETE FROM outbox_relay WHERE owner IN (
        SELECT owner FROM outbox_relay WHERE NOT outbox_is_lease(until, lease) FOR UPDATE SKIP LOCKED)
    RETURNING owner
), orphaned AS (
    SELECT lane, owner FROM outbox_lane
    WHERE owner IN (SELECT owner FROM gone)
        OR NOT EXISTS (SELECT 1 FROM outbox_relay WHERE outbox_relay.owner = outbox_lane.owner)
)
UPDATE outbox_lane AS l
SET owner = NULL, epoch = epoch + 1, quarantine_by = NULL,
    -- At most twenty owners, so that the list of a lane that crashes every relay does not grow without limit.
    crashed_by = right(crashed_by || l.owner || ' ', 20 * 37),
    quarantine_crashed_by = CASE WHEN quarantine_by = l.owner THEN right(quarantine_crashed_by || l.owner || ' ', 20 * 37)
        ELSE quarantine_crashed_by END
FROM orphaned WHERE l.lane = orphaned.lane AND l.owner = orphaned.owner
RETURNING l.lane
