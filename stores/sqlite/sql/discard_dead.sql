-- Deletes dead letters that match a filter, oldest first. Returns the keys that they blocked. Parameters: the
-- filter, how many, latest time of death, or NULL.
DELETE FROM outbox_dead
WHERE rowid IN (
    SELECT rowid FROM outbox_dead
    WHERE (?2 IS NULL OR ?2 = 'dead') AND (?19 IS NULL OR dead_at <= ?19) AND (?15 IS NULL OR reason = ?15)
    AND (?16 IS NULL OR dead_at >= ?16) AND (?17 IS NULL OR dead_at < ?17) AND
{filter}
    ORDER BY seq, sink, id LIMIT ?18)
RETURNING lane, CASE WHEN blocks THEN key END, sink
