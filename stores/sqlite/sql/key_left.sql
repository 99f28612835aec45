-- Whether anything of a key still waits for a leg, or blocks it. Parameters: lane, key, leg.
SELECT
    EXISTS (
        SELECT 1 FROM outbox_waiting
        WHERE lane = ?1 AND key = ?2 AND leg = ?3 AND state IN ('retry', 'held', 'down'))
    OR EXISTS (SELECT 1 FROM outbox_dead WHERE blocks AND lane = ?1 AND key = ?2 AND leg = ?3)
