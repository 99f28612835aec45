SELECT kind, name FROM outbox_control ORDER BY kind, name;

-- Paused topics, locked for a settlement that defers messages because of the pause. The pause cannot end before the
-- settlement does, and then the resume makes its rows due.
SELECT name FROM outbox_control WHERE kind = 'topic' LOCK IN SHARE MODE;
