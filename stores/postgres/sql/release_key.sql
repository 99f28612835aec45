-- $1 key, $2 leg or NULL for all. The dead letters stay, and stand in nobody's way any more.
UPDATE outbox_dead SET blocks = false
WHERE key = $1 AND blocks AND ($2::text IS NULL OR leg = $2)
RETURNING lane, key, leg
