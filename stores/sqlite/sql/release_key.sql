-- Dead letters of a key stay, and stand in nobody's way any more. Parameters: key, leg or NULL for all.
UPDATE outbox_dead SET blocks = 0 WHERE key = ?1 AND blocks AND (?2 IS NULL OR leg = ?2) RETURNING lane, key, leg
