-- The ids of ready rows that every sink confirmed, in the order of seq. Parameters: the first and the last seq, and a bit for
-- each of the first 64: set for those that are meant; -1 for all, also for those beyond.
SELECT id FROM outbox_message WHERE seq BETWEEN ?1 AND ?2 AND (?3 >> (seq - ?1)) & 1 ORDER BY seq;

-- Deletes them. The same parameters. No function is called, because SQLite copies every page that a statement with one
-- changes, to be able to undo it.
DELETE FROM outbox_message WHERE seq BETWEEN ?1 AND ?2 AND (?3 >> (seq - ?1)) & 1;
