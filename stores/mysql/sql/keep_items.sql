-- Which of them are held, locked until they are changed.
SELECT seq, claim FROM outbox_item FORCE INDEX (PRIMARY)
WHERE seq IN ({items}) AND lease_owner = UNHEX('{worker}') AND state = 'running' AND lease_until > UTC_TIMESTAMP(6)
ORDER BY seq FOR UPDATE;

-- Where completed items are kept.
UPDATE outbox_item
SET state = 'completed', completed_at = UTC_TIMESTAMP(6), lease_owner = NULL, leased_at = NULL, lease_until = NULL,
    next_attempt_at = NULL
WHERE seq IN ({items});
