-- Ready rows that every sink confirmed. Parameters: the first and the last seq, and a bit for each of the first 64: set for
-- those that are meant; -1 for all, also for those beyond. No function is called, because SQLite copies every page
-- that a statement with one changes, to be able to undo it.
DELETE FROM outbox_message WHERE seq BETWEEN ?1 AND ?2 AND (?3 >> (seq - ?1)) & 1
