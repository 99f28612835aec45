-- What counts up when a backup is written into the file, or its tables change. The last number that was given is asked by the
-- first statement of read_ready.sql.
PRAGMA schema_version
