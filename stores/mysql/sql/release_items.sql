-- Which of them are held, locked until they are changed.
SELECT seq, claim FROM outbox_item FORCE INDEX (PRIMARY)
WHERE seq IN ({items}) AND lease_owner = UNHEX('{worker}') AND state = 'running' AND lease_until > UTC_TIMESTAMP(6)
ORDER BY seq FOR UPDATE;

-- Given back unworked, so the attempt is not charged.
UPDATE outbox_item
SET state = IF(attempts > 1, 'retry', 'pending'), attempts = attempts - 1, lease_owner = NULL, leased_at = NULL,
    lease_until = NULL, next_attempt_at = UTC_TIMESTAMP(6)
WHERE seq IN ({items});
