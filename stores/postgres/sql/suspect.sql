-- $1 owner, $2 lane, $3 first and $4 last number, $5 id and $6 leg of a single row, or NULLs. Other rows than before start with
-- no crashes. Other lanes have no suspect that this owner has noted.
UPDATE outbox_lane
SET suspect_crashed_by = CASE
        WHEN lane = $2 AND suspect_first = $3 AND suspect_last = $4 AND suspect_id IS NOT DISTINCT FROM $5
            AND suspect_leg IS NOT DISTINCT FROM $6 THEN suspect_crashed_by
        ELSE '' END,
    suspect_first = CASE WHEN lane = $2 THEN $3 END, suspect_last = CASE WHEN lane = $2 THEN $4 END,
    suspect_id = CASE WHEN lane = $2 THEN $5 END, suspect_leg = CASE WHEN lane = $2 THEN $6 END,
    suspect_by = CASE WHEN lane = $2 AND $3 IS NOT NULL THEN $1 END
WHERE owner = $1 AND (lane = $2 OR suspect_by = $1)
