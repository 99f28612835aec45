-- Ready rows that every sink confirmed. Parameters: the first and the last seq, and a byte for each from the first to the
-- last: 1 for those that are meant.
DELETE FROM outbox_message WHERE seq BETWEEN ?1 AND ?2 AND substr(?3, seq - ?1 + 1, 1) = x'01'
