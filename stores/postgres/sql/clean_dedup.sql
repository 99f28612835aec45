-- $1 how many. Deletes by ctid, as the other deletions do: with a join the planner may read the whole table for a few rows.
-- The expiry is compared again at the end: a key may be taken again while this waits for its row.
DELETE FROM outbox_dedup
WHERE ctid = ANY (ARRAY(SELECT ctid FROM outbox_dedup WHERE until <= now() ORDER BY until LIMIT $1)) AND until <= now()
RETURNING 1
