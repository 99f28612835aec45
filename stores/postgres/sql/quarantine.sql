-- $1 owner, $2 lane, $3 first and $4 last number, $5 id and $6 sink of a single row, or NULLs. Other rows than before start
-- with no crashes. The quarantines that this owner wrote on other lanes are cleared.
UPDATE outbox_lane
SET quarantine_crashed_by = CASE
        WHEN lane = $2 AND quarantine_first = $3 AND quarantine_last = $4 AND quarantine_id IS NOT DISTINCT FROM $5
            AND quarantine_sink IS NOT DISTINCT FROM $6 THEN quarantine_crashed_by
        ELSE '' END,
    quarantine_first = CASE WHEN lane = $2 THEN $3 END, quarantine_last = CASE WHEN lane = $2 THEN $4 END,
    quarantine_id = CASE WHEN lane = $2 THEN $5 END, quarantine_sink = CASE WHEN lane = $2 THEN $6 END,
    quarantine_by = CASE WHEN lane = $2 AND $3 IS NOT NULL THEN $1 END
WHERE owner = $1 AND (lane = $2 OR quarantine_by = $1)
