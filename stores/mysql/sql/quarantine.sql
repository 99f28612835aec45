-- Writes down the rows that the owner works on alone, or that there are none. Other rows than before start with no
-- crashes; that is decided first, because each assignment sees the previous ones.
UPDATE outbox_lane
SET quarantine_crashed_by = IF(
        :first IS NOT NULL AND quarantine_first <=> :first AND quarantine_last <=> :last AND quarantine_sink <=> UNHEX(:sink)
            AND quarantine_id <=> UNHEX(:id),
        quarantine_crashed_by, ''),
    quarantine_first = :first, quarantine_last = :last, quarantine_sink = UNHEX(:sink), quarantine_id = UNHEX(:id),
    quarantine_by = IF(:first IS NULL, NULL, :owner)
WHERE owner = :owner AND lane = :lane;

-- Clears the quarantines that this owner wrote on other lanes.
UPDATE outbox_lane
SET quarantine_first = NULL, quarantine_last = NULL, quarantine_sink = NULL, quarantine_id = NULL, quarantine_by = NULL,
    quarantine_crashed_by = ''
WHERE owner = :owner AND quarantine_by = :owner AND lane <> :lane;
