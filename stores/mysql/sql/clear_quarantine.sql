-- Clears the crashes of lanes that the relay holds.
UPDATE outbox_lane
SET crashed_by = '', quarantine_first = NULL, quarantine_last = NULL, quarantine_sink = NULL, quarantine_id = NULL, quarantine_by = NULL,
    quarantine_crashed_by = ''
WHERE owner = :owner AND lane IN ({lanes}) AND (crashed_by <> '' OR quarantine_first IS NOT NULL)
