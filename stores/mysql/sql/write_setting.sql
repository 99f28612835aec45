REPLACE INTO outbox_setting (name, value) VALUES (:name, :value)
