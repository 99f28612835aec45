-- Which server answers. MariaDB has no server_uuid, and skips the comment for MySQL.
SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir /*!80000 , @@server_uuid */);

-- Uptime in seconds. Relays may lack the privileges for the other tables that have it.
SHOW GLOBAL STATUS LIKE 'Uptime';

-- The last number assigned to a message. MySQL returns an old value unless the session has
-- information_schema_stats_expiry = 0.
SELECT coalesce(AUTO_INCREMENT, 1) - 1 FROM information_schema.TABLES
WHERE TABLE_SCHEMA = coalesce(:schema, DATABASE()) AND TABLE_NAME = :name;
