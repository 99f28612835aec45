-- Gives everything back at a clean stop. Parameter: owner.
UPDATE outbox_lane
SET owner = NULL, epoch = epoch + 1, crashes = 0, suspect_seq = NULL, suspect_id = NULL, suspect_leg = NULL, suspect_crashes = 0
WHERE owner = ?1;

DELETE FROM outbox_relay WHERE owner = ?1;
