-- The filter as a condition, inserted into other statements. NULL, or an empty array of ids, means "any":
-- ?1 ids, ?3 topic, ?4 key, ?5 and ?6 aggregate type and id as GLOBs, ?7 idempotency key, ?8 sink, ?9 part of the
-- error, ?10 part of the payload, ?11 and ?12 created from and until, ?13 the text to search for, ?14 values in the
-- payload as JSON: paths and values. ?2 is the status, which every statement checks itself, like ?15 to ?17.
    (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1)))
    AND (?3 IS NULL OR topic GLOB ?3)
    AND (?4 IS NULL OR key GLOB ?4)
    AND (?5 IS NULL OR aggregate_type GLOB ?5)
    AND (?6 IS NULL OR aggregate_id GLOB ?6)
    AND (?7 IS NULL OR idempotency_key = ?7)
    AND (?8 IS NULL OR sink = ?8)
    AND (?9 IS NULL OR instr(last_error, ?9) > 0)
    AND (?10 IS NULL OR instr(CAST(payload AS BLOB), CAST(?10 AS BLOB)) > 0)
    AND (?11 IS NULL OR created_at >= ?11)
    AND (?12 IS NULL OR created_at < ?12)
    AND (?13 IS NULL OR substr(lower(id), 1, length(?13)) = lower(?13) OR instr(topic || char(1) || coalesce(key, '')
        || char(1) || coalesce(aggregate_type, '') || char(1) || coalesce(aggregate_id, '') || char(1)
        || coalesce(idempotency_key, '') || char(1) || coalesce(last_error, ''), ?13) > 0)
    AND CASE
        WHEN ?14 IS NULL THEN 1
        WHEN json_valid(CAST(payload AS TEXT)) THEN NOT EXISTS (
            SELECT 1 FROM json_each(?14) AS w
            WHERE (CASE json_type(CAST(payload AS TEXT), json_extract(w.value, '$.path'))
                WHEN 'true' THEN 'true'
                WHEN 'false' THEN 'false'
                WHEN 'null' THEN 'null'
                WHEN 'object' THEN NULL
                WHEN 'array' THEN NULL
                ELSE CAST(json_extract(CAST(payload AS TEXT), json_extract(w.value, '$.path')) AS TEXT)
            END) IS NOT json_extract(w.value, '$.value'))
        ELSE 0
    END
