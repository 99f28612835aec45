-- Steps that were applied.
SELECT version, checksum FROM outbox_migration ORDER BY version;

-- Which of the outbox's own objects are there; a person may have created them with another tool.
SELECT name FROM sqlite_schema
WHERE type IN ('table', 'view', 'trigger', 'index') AND sql IS NOT NULL;
