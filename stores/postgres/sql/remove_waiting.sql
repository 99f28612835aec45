-- $1 lanes, $2 seqs, $3 ids, $4 legs: rows that have been moved elsewhere.
DELETE FROM outbox_waiting AS w USING unnest($1, $2, $3, $4) AS d (lane, seq, id, leg)
WHERE w.lane = d.lane AND w.seq = d.seq AND w.leg = d.leg AND w.id = d.id
