-- Gives everything back at a clean stop. Parameter: owner.
UPDATE outbox_lane
-- What it was working on is no suspect; what others left is.
SET owner = NULL, epoch = epoch + 1, crashed_by = '',
    suspect_first = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_first END,
    suspect_last = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_last END,
    suspect_id = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_id END,
    suspect_leg = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_leg END,
    suspect_crashed_by = CASE WHEN suspect_by IS ?1 THEN '' ELSE suspect_crashed_by END,
    suspect_by = CASE WHEN suspect_by IS ?1 THEN NULL ELSE suspect_by END
WHERE owner = ?1;

-- It lives: what was counted against it on lanes that others hold by now was no crash.
UPDATE outbox_lane
SET crashed_by = replace(crashed_by, ?1 || ' ', ''), suspect_crashed_by = replace(suspect_crashed_by, ?1 || ' ', '')
WHERE instr(crashed_by || suspect_crashed_by, ?1) > 0;

DELETE FROM outbox_relay WHERE owner = ?1;
