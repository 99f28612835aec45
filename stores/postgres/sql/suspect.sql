-- $1 owner, $2 lane, $3 seq or NULL, $4 leg or NULL, $5 id or NULL. Another row than before starts with no crashes.
UPDATE outbox_lane
SET suspect_seq = $3, suspect_id = $5, suspect_leg = $4,
    suspect_crashes = CASE
        WHEN suspect_seq = $3 AND suspect_id = $5 AND suspect_leg IS NOT DISTINCT FROM $4 THEN suspect_crashes
        ELSE 0 END
WHERE owner = $1 AND lane = $2
