-- Deleting the relay's row waits for its settlements, as release does.
DELETE FROM outbox_relay WHERE owner = :owner;

UPDATE outbox_lane
SET owner = NULL, epoch = epoch + 1, crashes = 0, suspect_seq = NULL, suspect_leg = NULL, suspect_id = NULL,
    suspect_crashes = 0
WHERE owner = :owner;
