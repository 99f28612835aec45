-- $1 owner, $2 how many. The key-share lock makes a concurrent eviction of this relay visible; SKIP LOCKED gives different
-- lanes to two relays that ask at the same time. Lanes are taken in strides, so that every relay gets some of every kind.
WITH me AS (
    SELECT owner FROM outbox_relay WHERE owner = $1 AND outbox_is_lease(until, lease) FOR KEY SHARE
), free AS (
    SELECT lane FROM outbox_lane WHERE owner IS NULL AND EXISTS (SELECT 1 FROM me)
    ORDER BY lane % 8, lane LIMIT $2 FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE outbox_lane AS l SET owner = $1, epoch = epoch + 1 FROM free WHERE l.lane = free.lane
    RETURNING l.lane, l.epoch, length(l.crashed_by) / 37 AS crashes, l.quarantine_first, l.quarantine_last, l.quarantine_id,
        l.quarantine_sink, length(l.quarantine_crashed_by) / 37 AS quarantine_crashes
)
SELECT EXISTS (SELECT 1 FROM me), lane, epoch, crashes, quarantine_first, quarantine_last, quarantine_id, quarantine_sink, quarantine_crashes
FROM (VALUES (1)) AS always LEFT JOIN taken ON true
