-- Pauses: what, since when and by whom.
SELECT kind, name, paused_at, paused_by FROM outbox_control ORDER BY paused_at, kind, name
