-- Failed items, of these ids if there are any. What has ended has no next attempt: so what is due is not even looked at.
SELECT seq FROM outbox_item FORCE INDEX (ix_outbox_item_due)
WHERE next_attempt_at IS NULL AND completed_at IS NULL AND state = 'failed' AND (:all OR id IN (
    SELECT j.id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(36) CHARACTER SET ascii PATH '$')) AS j))
ORDER BY seq LIMIT :limit FOR UPDATE SKIP LOCKED;

-- One that had expired comes back without its date: otherwise it would fail again at once.
UPDATE JSON_TABLE(:rows, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS s
STRAIGHT_JOIN outbox_item AS i FORCE INDEX (PRIMARY) ON i.seq = s.seq
SET i.state = 'pending', i.attempts = 0, i.next_attempt_at = UTC_TIMESTAMP(6),
    i.expires_at = IF(i.expires_at > UTC_TIMESTAMP(6), i.expires_at, NULL);
