-- Delivered messages whose retention is over.
SELECT number FROM outbox_delivered FORCE INDEX (ix_outbox_delivered_at)
WHERE delivered_at <= UTC_TIMESTAMP(6) - INTERVAL :age MICROSECOND
ORDER BY delivered_at LIMIT :limit FOR UPDATE SKIP LOCKED;

DELETE d
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (number BIGINT PATH '$[0]')) AS s
STRAIGHT_JOIN outbox_delivered AS d FORCE INDEX (PRIMARY) ON d.number = s.number;
