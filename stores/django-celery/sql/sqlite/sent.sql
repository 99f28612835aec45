-- Whichever relay holds the row now: it was delivered.
DELETE FROM celery_outbox WHERE id = ?1
