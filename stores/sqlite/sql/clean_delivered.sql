-- Delivered messages whose retention is over. Parameters: minimum age in microseconds, how many at most.
DELETE FROM outbox_delivered WHERE rowid IN (
    SELECT rowid FROM outbox_delivered
    WHERE delivered_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - ?1
    ORDER BY delivered_at LIMIT ?2)
