-- All relays with a valid lease, in the same order for every caller.
SELECT owner, config, routes FROM outbox_relay WHERE {lease_is_valid} ORDER BY owner
