-- $1 who, $2 filter as JSON text, $3 how many, $4 whether to reset attempts, $5 to $8 lane, seq, sink and id after which to
-- begin, $9 the audit row of the command, or NULL. Returns how many rows became due, how many were checked, and the position
-- of the last checked row.
SELECT noted, affected, looked_at, last_lane, last_seq, last_delivery, last_id
FROM outbox_retry_waiting($1, $2::text::jsonb, $3, $4, $5, $6, $7, $8, $9)
