-- $1 how many. By their places, here and in the other deletions: joined, the planner may read the whole table for a few rows.
-- Compared again in the end: a key may be taken anew while this waits for its row.
DELETE FROM outbox_dedup
WHERE ctid = ANY (ARRAY(SELECT ctid FROM outbox_dedup WHERE until <= now() ORDER BY until LIMIT $1)) AND until <= now()
RETURNING 1
