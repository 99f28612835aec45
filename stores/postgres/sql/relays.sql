-- All relays with a valid lease, in an order that everybody agrees on.
SELECT owner, config, routes FROM outbox_relay WHERE outbox_is_lease(until, lease) ORDER BY owner
