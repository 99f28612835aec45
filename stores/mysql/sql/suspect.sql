-- Notes the rows that the owner works on and on nothing else, or that there are none. Other rows than before start with no
-- crashes; that is decided first, because each assignment sees those before it.
UPDATE outbox_lane
SET suspect_crashed_by = IF(
        :first IS NOT NULL AND suspect_first <=> :first AND suspect_last <=> :last AND suspect_leg <=> UNHEX(:leg)
            AND suspect_id <=> UNHEX(:id),
        suspect_crashed_by, ''),
    suspect_first = :first, suspect_last = :last, suspect_leg = UNHEX(:leg), suspect_id = UNHEX(:id),
    suspect_by = IF(:first IS NULL, NULL, :owner)
WHERE owner = :owner AND lane = :lane;

-- Other lanes have no suspect that this owner has noted.
UPDATE outbox_lane
SET suspect_first = NULL, suspect_last = NULL, suspect_leg = NULL, suspect_id = NULL, suspect_by = NULL,
    suspect_crashed_by = ''
WHERE owner = :owner AND suspect_by = :owner AND lane <> :lane;
