-- $1 owner, $2 lanes, $3 their epochs, $4 how many rows of each, $5 seqs, lane after lane, $6 their ids, $7 their ctids.
SELECT outbox_settle_delivered($1, $2, $3, $4, $5, $6, $7)
