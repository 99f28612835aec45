-- Deletes dead letters that fit a filter, oldest first. Returns the keys that they stood in the way of. Parameters: the
-- filter, how many, by when they had died, or NULL.
DELETE FROM outbox_dead
WHERE rowid IN (
    SELECT rowid FROM outbox_dead
    WHERE (?2 IS NULL OR ?2 = 'dead') AND (?14 IS NULL OR dead_at <= ?14) AND
{filter}
    ORDER BY seq, leg, id LIMIT ?13)
RETURNING lane, CASE WHEN blocks THEN key END, leg
