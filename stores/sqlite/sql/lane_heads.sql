-- The first ready message of each lane, with its age in microseconds, and whether a relay holds the lane, as far as the
-- lane is among the oldest messages.
-- Parameters: how many of them to read.
SELECT lane, min(seq), CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) - created_at,
    EXISTS (SELECT 1 FROM outbox_lane AS held JOIN outbox_relay AS relay ON relay.owner = held.owner
        WHERE held.lane = first.lane
            AND relay.until > CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
            AND relay.until <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)
                + relay.lease + relay.lease / 5)
FROM (SELECT lane, seq, created_at FROM outbox_message ORDER BY seq LIMIT ?1) AS first
GROUP BY lane
