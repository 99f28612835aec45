-- Failed items, of these ids if there are any.
SELECT seq FROM outbox_item
WHERE state = 'failed' AND (:all OR id IN (
    SELECT j.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(36) CHARACTER SET ascii PATH '$')) AS j))
ORDER BY seq LIMIT :limit FOR UPDATE;

DELETE i
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS s
STRAIGHT_JOIN outbox_item AS i FORCE INDEX (PRIMARY) ON i.seq = s.seq;
