-- The head: the highest seq that was ever given. A row that commits after this was read has a higher one.
-- And the time, which is asked for once a page: to ask in every row takes longer than to read the row's texts.
SELECT max(
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox_message'), 0),
    coalesce((SELECT max(seq) FROM outbox_message), 0)),
    CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER);

-- Rows of lanes 0 to 63. Parameters of this and the next two: floor, ceiling, a bit for each lane that is wanted.
SELECT seq, lane, {contents}
FROM outbox_message
WHERE seq > ?1 AND seq <= ?2 AND lane < 64 AND (?3 >> lane) & 1
ORDER BY seq;

-- Rows of lanes 64 to 71.
SELECT seq, lane, {contents}
FROM outbox_message INDEXED BY ix_outbox_message_urgent
WHERE seq > ?1 AND seq <= ?2 AND priority > 0 AND key IS NULL AND (?3 >> (lane - 64)) & 1
ORDER BY seq;

-- Rows of lanes 72 to 79.
SELECT seq, lane, {contents}
FROM outbox_message INDEXED BY ix_outbox_message_idle
WHERE seq > ?1 AND seq <= ?2 AND priority < 0 AND key IS NULL AND (?3 >> (lane - 72)) & 1
ORDER BY seq;

-- The sweep: every row up to a seq, without its contents.
SELECT seq, lane, id FROM outbox_message WHERE seq <= ?1 ORDER BY seq;
