-- $1 lanes, $2 seqs: rows whose legs have all been moved elsewhere.
DELETE FROM outbox_message AS m USING unnest($1, $2) AS d (lane, seq) WHERE m.lane = d.lane AND m.seq = d.seq
