-- Dead letters of a key stay but no longer block. Parameters: key, sink or NULL for all.
UPDATE outbox_dead SET blocks = 0 WHERE key = ?1 AND blocks AND (?2 IS NULL OR sink = ?2) RETURNING lane, key, sink
