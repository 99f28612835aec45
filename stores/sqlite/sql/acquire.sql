-- Leases lanes that nobody holds, to a relay whose own lease is valid. The write lock keeps two relays from taking one
-- lane. Multiplying by 37 strews the lanes, so that the few for urgent and idle messages do not all go to one relay.
-- Parameters: owner, how many at most.
UPDATE outbox_lane SET owner = ?1, epoch = epoch + 1
WHERE lane IN (SELECT lane FROM outbox_lane WHERE owner IS NULL ORDER BY lane * 37 % 80 LIMIT ?2)
RETURNING lane, epoch, length(crashed_by) / 37, suspect_first, suspect_last, suspect_leg, suspect_id,
    length(suspect_crashed_by) / 37
