-- $1 owner, $2 lanes, $3 their epochs. The first statement of every settlement, except those of only delivered messages.
SELECT outbox_check_lanes($1, $2, $3)
