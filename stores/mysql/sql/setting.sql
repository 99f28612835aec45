SELECT value FROM outbox_setting WHERE name = :name
