-- Jobs in the order of their emission, with the columns of list.sql, the worker and the end of its lease. {state} is a
-- condition on the state, {bytes} the maximum bytes of a payload, {headers} the maximum bytes of headers; only these ids if
-- there are any, after a number, with this part in the payload unless it is NULL.
SELECT
    CASE i.state WHEN 'completed' THEN 'delivered' WHEN 'failed' THEN 'dead' WHEN 'retry' THEN 'retry' ELSE 'pending' END
        AS status,
    '' AS sink, 0 AS lane, i.seq, i.attempts, i.last_error, i.state AS detail, NULL AS history,
    i.lease_owner, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.lease_until) AS lease_until,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.created_at) AS created_at,
    IF(i.state = 'running', NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.next_attempt_at)) AS due_at,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.expires_at) AS expires_at,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', i.completed_at) AS ended_at,
    IF(OCTET_LENGTH(i.headers) <= {headers}, i.headers, NULL) AS headers, i.headers IS NOT NULL AS has_headers,
    SUBSTRING(i.payload, 1, {bytes}) AS payload, OCTET_LENGTH(i.payload) AS payload_bytes,
    {i.shown}
FROM outbox_job AS i
WHERE {state} AND (:all OR i.id IN (
    SELECT j.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(36) CHARACTER SET ascii PATH '$')) AS j))
    AND i.seq > :after AND (:payload IS NULL OR INSTR(i.payload, CAST(:payload AS BINARY)) > 0)
ORDER BY i.seq LIMIT :limit;
