-- A waiting row that was moved to another table. Parameters: lane, seq, sink, id.
DELETE FROM outbox_waiting WHERE lane = ?1 AND seq = ?2 AND sink = ?3 AND id = ?4
