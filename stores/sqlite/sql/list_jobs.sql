-- Jobs in the order of their emission, with the columns of list.sql, the worker and the end of its lease. {state} is a
-- condition on the state, {bytes} the maximum bytes of a payload, {headers} the maximum bytes of headers. Parameters: ids as
-- JSON (none: all), the number after which to begin, how many, part of the payload or NULL for any.
SELECT
    CASE state WHEN 'completed' THEN 'delivered' WHEN 'failed' THEN 'dead' WHEN 'retry' THEN 'retry' ELSE 'pending' END
        AS status,
    '' AS sink, 0 AS lane, seq, attempts, last_error, state AS detail, NULL AS history, created_at,
    CASE WHEN state IN ('pending', 'retry') THEN next_attempt_at END AS due_at, expires_at, completed_at AS ended_at,
    CASE WHEN length(CAST(headers AS BLOB)) <= {headers} THEN headers END AS headers, headers IS NOT NULL AS has_headers,
    substr(CAST(payload AS BLOB), 1, {bytes}) AS payload, length(CAST(payload AS BLOB)) AS payload_bytes,
    lease_owner, lease_until, {shown}
FROM outbox_job
WHERE {state} AND (json_array_length(?1) = 0 OR id IN (SELECT value FROM json_each(?1))) AND seq > ?2
    AND (?4 IS NULL OR instr(CAST(payload AS BLOB), CAST(?4 AS BLOB)) > 0)
ORDER BY seq LIMIT ?3
