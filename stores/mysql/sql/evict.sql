-- Whether there is anything to do: relays ask every few seconds.
SELECT EXISTS (SELECT 1 FROM outbox_relay WHERE NOT {lease_is_valid})
    OR EXISTS (
        SELECT 1 FROM outbox_lane AS l WHERE l.owner IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM outbox_relay AS r WHERE r.owner = l.owner));

-- A relay with a running settlement holds a lock on its row: it is skipped, and evicted the next time.
SELECT owner FROM outbox_relay WHERE NOT {lease_is_valid} FOR UPDATE SKIP LOCKED;

DELETE r
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (owner VARCHAR(36) CHARACTER SET ascii PATH '$[0]')) AS s
STRAIGHT_JOIN outbox_relay AS r FORCE INDEX (PRIMARY) ON r.owner = s.owner;

-- Lanes of relays that do not exist (any more). Found first, and compared again by owner below, so that a lane with a
-- new owner is left alone.
SELECT l.lane, l.owner FROM outbox_lane AS l
WHERE l.owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM outbox_relay AS r WHERE r.owner = l.owner);

UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (
    lane SMALLINT PATH '$[0]', owner VARCHAR(36) CHARACTER SET ascii PATH '$[1]')) AS s
STRAIGHT_JOIN outbox_lane AS l FORCE INDEX (PRIMARY) ON l.lane = s.lane AND l.owner = s.owner
-- At most twenty crashes. No assignment reads a column that another one changes: their order is not defined here.
SET l.crashed_by = RIGHT(CONCAT(l.crashed_by, s.owner, ','), 20 * 37),
    l.quarantine_crashed_by = IF(l.quarantine_by <=> s.owner,
        RIGHT(CONCAT(l.quarantine_crashed_by, s.owner, ','), 20 * 37), l.quarantine_crashed_by),
    l.owner = NULL, l.epoch = l.epoch + 1;

-- Relays whose lease expired at least this many microseconds ago, or ends too far in the future, and whose row still
-- exists: one of their transactions has a lock on it.
SELECT owner FROM outbox_relay
WHERE NOT {lease_is_valid} AND NOT until BETWEEN UTC_TIMESTAMP(6) - INTERVAL :moment MICROSECOND AND UTC_TIMESTAMP(6);
