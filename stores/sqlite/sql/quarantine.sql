-- Writes down the rows that the owner works on alone, or that there are none. Other rows than before start with no
-- crashes, and the quarantines that this owner wrote on other lanes are cleared. Parameters: owner, lane, first and last
-- number, id and sink of a single row, or NULLs.
UPDATE outbox_lane
SET quarantine_crashed_by = CASE
        WHEN lane = ?2 AND ?3 IS NOT NULL AND quarantine_first IS ?3 AND quarantine_last IS ?4 AND quarantine_id IS ?5
            AND quarantine_sink IS ?6 THEN quarantine_crashed_by
        ELSE '' END,
    quarantine_first = CASE WHEN lane = ?2 THEN ?3 END, quarantine_last = CASE WHEN lane = ?2 THEN ?4 END,
    quarantine_id = CASE WHEN lane = ?2 THEN ?5 END, quarantine_sink = CASE WHEN lane = ?2 THEN ?6 END,
    quarantine_by = CASE WHEN lane = ?2 AND ?3 IS NOT NULL THEN ?1 END
WHERE owner = ?1 AND (lane = ?2 OR quarantine_by IS ?1)
