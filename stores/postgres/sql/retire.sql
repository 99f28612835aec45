-- $1 owner. Deleting the relay's row waits for its settlements, as release does.
WITH gone AS (
    DELETE FROM outbox_relay WHERE owner = $1
)
UPDATE outbox_lane
SET owner = NULL, epoch = epoch + 1, crashes = 0, suspect_seq = NULL, suspect_id = NULL, suspect_leg = NULL, suspect_crashes = 0
WHERE owner = $1
