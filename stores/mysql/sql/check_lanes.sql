-- Whether the lease is still valid, without a lock: InnoDB would also lock the row of an expired lease before it
-- checks the time, and an eviction at that moment would skip it.
SELECT 1 FROM outbox_relay WHERE owner = :owner AND {lease_is_valid};

-- The fence, first in every settlement: the lock on the relay's row conflicts with evicting that relay and with
-- releasing lanes, so a lane that is read after it cannot change its owner before this transaction ends.
SELECT 1 FROM outbox_relay WHERE owner = :owner AND {lease_is_valid} LOCK IN SHARE MODE;

-- The lanes that it holds. A separate statement, so that it sees changes made while the previous one waited for the lock.
SELECT lane, epoch FROM outbox_lane WHERE owner = :owner;
