-- Renews a lease, in microseconds, that has not run out: once it has, others may be taking its lanes already.
UPDATE outbox_relay SET until = TIMESTAMPADD(MICROSECOND, :lease, UTC_TIMESTAMP(6))
WHERE owner = :owner AND until > UTC_TIMESTAMP(6)
