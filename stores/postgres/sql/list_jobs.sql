-- Jobs in the order of their emission, with the columns of list.sql, the worker and the end of its lease. {state} is a
-- condition on the state, {bytes} the maximum bytes of a payload, {headers} the maximum bytes of headers. $1 ids (none: all),
-- $2 the number after which to begin, $3 how many, $4 part of the payload, NULL for any.
SELECT
    CASE i.state WHEN 'completed' THEN 'delivered' WHEN 'failed' THEN 'dead' WHEN 'retry' THEN 'retry' ELSE 'pending' END
        AS status,
    '' AS sink, 0::smallint AS lane, i.seq, i.attempts, i.last_error, i.state AS detail, NULL::text AS history,
    i.created_at, CASE WHEN i.state <> 'running' THEN i.next_attempt_at END AS due_at, i.expires_at,
    i.completed_at AS ended_at,
    CASE
        WHEN pg_column_size(i.headers) > 1048576 THEN NULL
        WHEN octet_length(i.headers::text) <= {headers} THEN i.headers::text END AS headers,
    i.headers IS NOT NULL AS has_headers,
    substring(i.payload FROM 1 FOR {bytes}) AS payload, octet_length(i.payload)::bigint AS payload_bytes,
    i.lease_owner, i.lease_until, {i.shown}
FROM outbox_job AS i
WHERE {state} AND (cardinality($1) = 0 OR i.id = ANY ($1)) AND i.seq > $2
    AND ($4::bytea IS NULL OR position($4 IN i.payload) > 0)
ORDER BY i.seq LIMIT $3
