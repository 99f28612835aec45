-- $1 lanes, $2 seqs, $3 legs.
DELETE FROM outbox_waiting AS w USING unnest($1, $2, $3) AS d (lane, seq, leg)
WHERE w.lane = d.lane AND w.seq = d.seq AND w.leg = d.leg
