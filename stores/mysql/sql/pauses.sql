-- Pauses: what, since when and by whom.
SELECT kind, name, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', paused_at), paused_by
FROM outbox_control ORDER BY paused_at, kind, name
