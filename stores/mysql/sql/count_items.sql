SELECT state, items FROM outbox_item_count
