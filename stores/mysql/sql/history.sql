-- Which server answers. MariaDB has no server_uuid, and passes over what is written for MySQL.
SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir /*!80000 , @@server_uuid */);

-- For how long it has run, in seconds: more than any relay may ask of the other tables that tell it.
SHOW GLOBAL STATUS LIKE 'Uptime';

-- The last number that was handed out to a message. MySQL gives an old answer unless the session has
-- information_schema_stats_expiry = 0.
SELECT coalesce(AUTO_INCREMENT, 1) - 1 FROM information_schema.TABLES
WHERE TABLE_SCHEMA = coalesce(:schema, DATABASE()) AND TABLE_NAME = :name;
