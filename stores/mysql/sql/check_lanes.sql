-- Whether the lease still holds, without a lock: InnoDB would lock the row of a lease that has run out, too, before it
-- looks at the time, and an eviction at that moment would pass it over.
SELECT 1 FROM outbox_relay WHERE owner = :owner AND {lease_is_valid};

-- The fence, first in every settlement: the lock on the relay's row conflicts with the eviction of that relay and with
-- giving lanes back, so a lane that is looked at behind it cannot change hands before this transaction ends.
SELECT 1 FROM outbox_relay WHERE owner = :owner AND {lease_is_valid} LOCK IN SHARE MODE;

-- The lanes that it holds. A statement of its own, so that what happened while the lock was waited for is seen.
SELECT lane, epoch FROM outbox_lane WHERE owner = :owner;
