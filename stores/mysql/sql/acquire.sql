-- The shared lock makes a concurrent eviction of this relay visible.
SELECT 1 FROM outbox_relay WHERE owner = :owner AND {lease_is_valid} LOCK IN SHARE MODE;

-- Lanes that look free, in strides, so that every relay gets some of every kind. Not locked: a lock here would cover
-- every lane that is sorted, including those that are not taken.
SELECT lane FROM outbox_lane WHERE owner IS NULL ORDER BY lane % 8, lane;

-- Those of them that are free; two relays that ask at the same time get different lanes.
SELECT lane, epoch + 1, LENGTH(crashed_by) DIV 37, quarantine_first, quarantine_last, HEX(quarantine_sink), quarantine_id,
    LENGTH(quarantine_crashed_by) DIV 37
FROM outbox_lane FORCE INDEX (PRIMARY)
WHERE lane IN ({lanes}) AND owner IS NULL FOR UPDATE SKIP LOCKED;

-- Takes these lanes; they are locked by now.
UPDATE outbox_lane FORCE INDEX (PRIMARY) SET owner = :owner, epoch = epoch + 1 WHERE lane IN ({lanes});
