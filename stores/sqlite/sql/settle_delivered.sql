-- The ids of ready rows that every sink confirmed, one after the other, in the order of seq: SQLite walks a table in that
-- order, and rows that came in another would only be settled one by one. Parameters: the first and the last seq.
SELECT group_concat(id) FROM outbox_message WHERE seq BETWEEN ?1 AND ?2;

-- Deletes them. The same parameters. No function is called, because SQLite copies every page that a statement with one
-- changes, to be able to undo it.
DELETE FROM outbox_message WHERE seq BETWEEN ?1 AND ?2;

-- Both for numbers with gaps. One more parameter: a bit for each of 64 numbers from the first on, set for those that are meant.
SELECT group_concat(id) FROM outbox_message WHERE seq BETWEEN ?1 AND ?2 AND (?3 >> (seq - ?1)) & 1;

DELETE FROM outbox_message WHERE seq BETWEEN ?1 AND ?2 AND (?3 >> (seq - ?1)) & 1;
