-- $1 lanes, $2 sinks to leave out, $3 how many.
SELECT lane, seq, sink, attempts, coalesce(expires_at <= now(), false) AS expired, {contents}
FROM outbox_waiting
WHERE due_at <= now() AND lane = ANY ($1) AND sink <> ALL ($2)
ORDER BY due_at, seq LIMIT $3
