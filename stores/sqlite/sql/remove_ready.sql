-- A ready row whose deliveries were all moved to another table. Parameters: seq, lane, id.
DELETE FROM outbox_message WHERE seq = ?1 AND lane = ?2 AND id = ?3
