-- The shared lock keeps an eviction of this very relay from passing unseen.
SELECT 1 FROM outbox_relay WHERE owner = :owner AND {lease_is_valid} LOCK IN SHARE MODE;

-- Lanes that look free, in strides, so that everybody gets some of every kind. Not locked: a lock here would be put on
-- every lane that is sorted, also on those that are left to others.
SELECT lane FROM outbox_lane WHERE owner IS NULL ORDER BY lane % 8, lane;

-- Of these, those that are free; two relays that ask at once get different ones.
SELECT lane, epoch + 1, LENGTH(crashed_by) DIV 37, suspect_first, suspect_last, HEX(suspect_leg), suspect_id,
    LENGTH(suspect_crashed_by) DIV 37
FROM outbox_lane FORCE INDEX (PRIMARY)
WHERE lane IN ({lanes}) AND owner IS NULL FOR UPDATE SKIP LOCKED;

-- They are locked now.
UPDATE outbox_lane FORCE INDEX (PRIMARY) SET owner = :owner, epoch = epoch + 1 WHERE lane IN ({lanes});
