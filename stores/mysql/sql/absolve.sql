-- Forgets the crashes of lanes that the relay holds.
UPDATE outbox_lane
SET crashed_by = '', suspect_first = NULL, suspect_last = NULL, suspect_leg = NULL, suspect_id = NULL, suspect_by = NULL,
    suspect_crashed_by = ''
WHERE owner = :owner AND lane IN ({lanes}) AND (crashed_by <> '' OR suspect_first IS NOT NULL)
