-- Renews a lease, in microseconds, that has not run out: once it has, others may be taking its lanes already. Its owner may
-- renew it also when it ends too far ahead.
UPDATE outbox_relay SET until = TIMESTAMPADD(MICROSECOND, :lease, UTC_TIMESTAMP(6)), lease = :lease
WHERE owner = :owner AND until > UTC_TIMESTAMP(6);
