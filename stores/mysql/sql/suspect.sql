-- Notes the row that the owner works on alone, or that there is none. Another row than before starts with no crashes;
-- that is decided first, because each assignment sees those before it.
UPDATE outbox_lane
SET suspect_crashes = IF(
        :seq IS NOT NULL AND suspect_seq <=> :seq AND suspect_leg <=> UNHEX(:leg) AND suspect_id <=> UNHEX(:id),
        suspect_crashes, 0),
    suspect_seq = :seq, suspect_leg = UNHEX(:leg), suspect_id = UNHEX(:id)
WHERE owner = :owner AND lane = :lane
