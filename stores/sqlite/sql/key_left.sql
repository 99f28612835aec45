-- Whether a key still has waiting rows or dead letters that block at this sink. Parameters: lane, key, sink.
SELECT
    EXISTS (
        SELECT 1 FROM outbox_waiting
        WHERE lane = ?1 AND key = ?2 AND sink = ?3 AND state IN ('retry', 'blocked', 'deferred'))
    OR EXISTS (SELECT 1 FROM outbox_dead WHERE blocks AND lane = ?1 AND key = ?2 AND sink = ?3)
