-- $1 lanes, $2 seqs, $3 ids: rows whose deliveries were all moved to another table.
DELETE FROM outbox_message AS m USING unnest($1, $2, $3) AS d (lane, seq, id)
WHERE m.lane = d.lane AND m.seq = d.seq AND m.id = d.id
