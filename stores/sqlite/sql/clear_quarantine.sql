-- Clears the crashes of lanes that the relay holds. Parameters: owner, lanes.
UPDATE outbox_lane
SET crashed_by = '', quarantine_first = NULL, quarantine_last = NULL, quarantine_id = NULL, quarantine_sink = NULL, quarantine_by = NULL,
    quarantine_crashed_by = ''
WHERE owner = ?1 AND (crashed_by <> '' OR quarantine_first IS NOT NULL) AND lane IN (SELECT value FROM json_each(?2))
