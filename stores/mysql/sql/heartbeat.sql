-- Renews a lease (in microseconds) that has not expired: after that, other relays may be taking its lanes. A lease that ends
-- too far in the future is renewed, too.
UPDATE outbox_relay SET until = TIMESTAMPADD(MICROSECOND, :lease, UTC_TIMESTAMP(6)), lease = :lease
WHERE owner = :owner AND until > UTC_TIMESTAMP(6);
