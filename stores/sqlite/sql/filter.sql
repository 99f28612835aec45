-- The filter as a condition, put in where a statement says so. NULL where it says nothing, and an empty array of ids:
-- ?1 ids, ?3 topic as a GLOB, ?4 key, ?5 and ?6 aggregate type and id, ?7 idempotency key, ?8 leg, ?9 part of the
-- error, ?10 part of the payload, ?11 and ?12 created from and until. ?2 is the status, which every statement
-- knows by itself.
    (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1)))
    AND (?3 IS NULL OR topic GLOB ?3)
    AND (?4 IS NULL OR key = ?4)
    AND (?5 IS NULL OR aggregate_type = ?5)
    AND (?6 IS NULL OR aggregate_id = ?6)
    AND (?7 IS NULL OR idempotency_key = ?7)
    AND (?8 IS NULL OR leg = ?8)
    AND (?9 IS NULL OR instr(last_error, ?9) > 0)
    AND (?10 IS NULL OR instr(CAST(payload AS BLOB), CAST(?10 AS BLOB)) > 0)
    AND (?11 IS NULL OR created_at >= ?11)
    AND (?12 IS NULL OR created_at < ?12)
