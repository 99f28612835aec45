-- Notes the row that the owner works on alone, or that there is none. Another row than before starts to count anew.
-- Parameters: owner, lane, seq, id and leg or NULLs.
UPDATE outbox_lane
SET suspect_crashes = CASE
        WHEN ?3 IS NOT NULL AND suspect_seq IS ?3 AND suspect_id IS ?4 AND suspect_leg IS ?5
            THEN suspect_crashes ELSE 0 END,
    suspect_seq = ?3, suspect_id = ?4, suspect_leg = ?5
WHERE owner = ?1 AND lane = ?2
