-- A ready row that every sink confirmed. Parameters: seq, lane.
DELETE FROM outbox_message WHERE seq = ?1 AND lane = ?2
