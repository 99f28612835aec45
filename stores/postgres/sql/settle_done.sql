-- $1 lanes, $2 seqs, $3 ids, $4 sinks.
DELETE FROM outbox_waiting AS w USING unnest($1, $2, $3, $4) AS d (lane, seq, id, sink)
WHERE w.lane = d.lane AND w.seq = d.seq AND w.sink = d.sink AND w.id = d.id
