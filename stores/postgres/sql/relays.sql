-- All relays with a valid lease, in the same order for every caller.
SELECT owner, config, routes FROM outbox_relay WHERE outbox_is_lease(until, lease) ORDER BY owner
