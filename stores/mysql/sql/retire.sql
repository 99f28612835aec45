-- Deleting the relay's row waits for its settlements, as release does.
DELETE FROM outbox_relay WHERE owner = :owner;

-- What it was working on is no suspect; what others left is. Each assignment sees those before it.
UPDATE outbox_lane
SET owner = NULL, epoch = epoch + 1, crashed_by = '',
    suspect_first = IF(suspect_by <=> :owner, NULL, suspect_first),
    suspect_last = IF(suspect_by <=> :owner, NULL, suspect_last),
    suspect_leg = IF(suspect_by <=> :owner, NULL, suspect_leg),
    suspect_id = IF(suspect_by <=> :owner, NULL, suspect_id),
    suspect_crashed_by = IF(suspect_by <=> :owner, '', suspect_crashed_by),
    suspect_by = IF(suspect_by <=> :owner, NULL, suspect_by)
WHERE owner = :owner;

-- Lanes on which it counts as crashed. Not locked here: others work on them.
SELECT lane FROM outbox_lane WHERE LOCATE(:owner, crashed_by) > 0 OR LOCATE(:owner, suspect_crashed_by) > 0;

-- It lives.
UPDATE outbox_lane FORCE INDEX (PRIMARY)
SET crashed_by = REPLACE(crashed_by, CONCAT(:owner, ','), ''),
    suspect_crashed_by = REPLACE(suspect_crashed_by, CONCAT(:owner, ','), '')
WHERE lane IN ({lanes});
