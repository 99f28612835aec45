-- $1 owner, $2 lanes.
UPDATE outbox_lane SET crashes = 0 WHERE owner = $1 AND lane = ANY ($2) AND crashes > 0
