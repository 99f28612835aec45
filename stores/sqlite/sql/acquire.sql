-- Leases free lanes to a relay whose lease is valid. The write lock prevents two relays from taking the same
-- lane. Multiplying by 37 scatters the lanes, so that the few for urgent and low-priority messages do not all go to one relay.
-- Parameters: owner, how many at most.
UPDATE outbox_lane SET owner = ?1, epoch = epoch + 1
WHERE lane IN (SELECT lane FROM outbox_lane WHERE owner IS NULL ORDER BY lane * 37 % 80 LIMIT ?2)
RETURNING lane, epoch, length(crashed_by) / 37, quarantine_first, quarantine_last, quarantine_sink, quarantine_id,
    length(quarantine_crashed_by) / 37
