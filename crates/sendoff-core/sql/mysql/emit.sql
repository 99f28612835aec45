-- One message. The parameters have the same order in every emit statement. A trigger handles the lane, the idempotency
-- key and the schedule.
INSERT INTO outbox_message ({columns})
VALUES ({values})
