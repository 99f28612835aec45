-- Stamps are in the time zone of the session, as Django's Now() writes them; all other times are in UTC.
SELECT DATE_FORMAT(CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', COALESCE(?, @@GLOBAL.time_zone)), '%Y-%m-%d %H:%i:%s.%f')
