-- All relays with a valid lease, in an order that everybody agrees on.
SELECT owner FROM outbox_relay WHERE until > UTC_TIMESTAMP(6) ORDER BY owner
