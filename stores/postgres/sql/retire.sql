-- $1 owner. Deleting the relay's row waits for its settlements, as release does. It lives: what was counted against it on lanes
-- that others hold by now was no crash.
WITH gone AS (
    DELETE FROM outbox_relay WHERE owner = $1
)
UPDATE outbox_lane
SET owner = NULLIF(owner, $1), epoch = CASE WHEN owner = $1 THEN epoch + 1 ELSE epoch END,
    crashed_by = CASE WHEN owner = $1 THEN '' ELSE replace(crashed_by, $1::uuid || ' ', '') END,
    suspect_first = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_first END,
    suspect_last = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_last END,
    suspect_id = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_id END,
    suspect_leg = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_leg END,
    suspect_crashed_by = CASE WHEN suspect_by = $1 THEN '' ELSE replace(suspect_crashed_by, $1::uuid || ' ', '') END,
    suspect_by = CASE WHEN suspect_by = $1 THEN NULL ELSE suspect_by END
WHERE owner = $1 OR strpos(crashed_by || suspect_crashed_by, $1::uuid::text) > 0
