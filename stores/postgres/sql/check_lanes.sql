-- $1 owner, $2 lanes, $3 their epochs. The first statement of every settlement that is not of delivered messages alone.
SELECT outbox_check_lanes($1, $2, $3)
