-- A ready row whose legs have found their places. Parameters: seq, lane, id.
DELETE FROM outbox_message WHERE seq = ?1 AND lane = ?2 AND id = ?3
