-- Applied steps.
SELECT version, checksum FROM outbox_migration ORDER BY version;

-- Existing objects of the outbox; an operator may have created them with another tool.
SELECT name FROM sqlite_schema
WHERE type IN ('table', 'view', 'trigger', 'index') AND sql IS NOT NULL;
