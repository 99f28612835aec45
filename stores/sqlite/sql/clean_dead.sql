-- Dead letters whose retention is over. One that blocks its key is never deleted here. Parameters: minimum age in
-- microseconds, how many at most.
DELETE FROM outbox_dead WHERE rowid IN (
    SELECT rowid FROM outbox_dead
    WHERE dead_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1 AND NOT blocks
    ORDER BY dead_at LIMIT ?2)
