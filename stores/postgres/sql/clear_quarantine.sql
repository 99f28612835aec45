-- $1 owner, $2 lanes.
UPDATE outbox_lane
SET crashed_by = '', quarantine_first = NULL, quarantine_last = NULL, quarantine_id = NULL, quarantine_sink = NULL, quarantine_by = NULL,
    quarantine_crashed_by = ''
WHERE owner = $1 AND lane = ANY ($2) AND (crashed_by <> '' OR quarantine_first IS NOT NULL)
