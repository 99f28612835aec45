-- $1 owner, $2 lanes.
UPDATE outbox_lane
SET crashed_by = '', suspect_first = NULL, suspect_last = NULL, suspect_id = NULL, suspect_leg = NULL, suspect_by = NULL,
    suspect_crashed_by = ''
WHERE owner = $1 AND lane = ANY ($2) AND (crashed_by <> '' OR suspect_first IS NOT NULL)
