-- A counter that increases when a backup is written into the file, or its tables change. The first statement of
-- read_ready.sql reads the last assigned number.
PRAGMA schema_version
