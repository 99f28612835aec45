-- All relays with a valid lease, in an order that everybody agrees on.
SELECT owner, config, routes FROM outbox_relay WHERE {lease_is_valid} ORDER BY owner
