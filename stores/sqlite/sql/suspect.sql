-- Notes the rows that the owner works on and on nothing else, or that there are none. Other rows than before start to count
-- anew, and other lanes have no suspect that this owner has noted. Parameters: owner, lane, first and last number, id and leg
-- of a single row, or NULLs.
UPDATE outbox_lane
SET suspect_crashed_by = CASE
        WHEN lane = ?2 AND ?3 IS NOT NULL AND suspect_first IS ?3 AND suspect_last IS ?4 AND suspect_id IS ?5
            AND suspect_leg IS ?6 THEN suspect_crashed_by
        ELSE '' END,
    suspect_first = CASE WHEN lane = ?2 THEN ?3 END, suspect_last = CASE WHEN lane = ?2 THEN ?4 END,
    suspect_id = CASE WHEN lane = ?2 THEN ?5 END, suspect_leg = CASE WHEN lane = ?2 THEN ?6 END,
    suspect_by = CASE WHEN lane = ?2 AND ?3 IS NOT NULL THEN ?1 END
WHERE owner = ?1 AND (lane = ?2 OR suspect_by IS ?1)
