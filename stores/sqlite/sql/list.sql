-- The rows of a table that match, of those that {looked} selects. Parameters: the filter, ?18 how many, and from ?19 what
-- {looked} needs.
SELECT
    status, sink, lane, seq, attempts, last_error, detail, created_at, due_at, expires_at, ended_at, NULL AS history,
    CASE WHEN length(CAST(headers AS BLOB)) <= 4096 THEN headers END AS headers, headers IS NOT NULL AS has_headers,
    substr(CAST(payload AS BLOB), 1, 4096) AS payload, length(CAST(payload AS BLOB)) AS payload_bytes,
    {shown}
FROM (
{listed}
) AS a
WHERE (?2 IS NULL OR status = ?2) AND
{of_dead}
    AND
{filter}
ORDER BY {order}, lane, sink, id, ended_at
LIMIT ?18
