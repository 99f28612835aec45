-- $1 owner, $2 how many. The key-share lock keeps an eviction of this very relay from passing unseen; SKIP LOCKED gives
-- two relays that ask at once different lanes. Lanes are taken in strides, so that everybody gets some of every kind.
WITH me AS (
    SELECT owner FROM outbox_relay WHERE owner = $1 AND outbox_is_lease(until, lease) FOR KEY SHARE
), free AS (
    SELECT lane FROM outbox_lane WHERE owner IS NULL AND EXISTS (SELECT 1 FROM me)
    ORDER BY lane % 8, lane LIMIT $2 FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE outbox_lane AS l SET owner = $1, epoch = epoch + 1 FROM free WHERE l.lane = free.lane
    RETURNING l.lane, l.epoch, length(l.crashed_by) / 37 AS crashes, l.suspect_first, l.suspect_last, l.suspect_id,
        l.suspect_leg, length(l.suspect_crashed_by) / 37 AS suspect_crashes
)
SELECT EXISTS (SELECT 1 FROM me), lane, epoch, crashes, suspect_first, suspect_last, suspect_id, suspect_leg, suspect_crashes
FROM (VALUES (1)) AS always LEFT JOIN taken ON true
