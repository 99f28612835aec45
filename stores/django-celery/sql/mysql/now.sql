-- Stamps are written in the time zone of the session, as Django's Now() does; every other point in time is in UTC.
SELECT DATE_FORMAT(CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', COALESCE(?, @@GLOBAL.time_zone)), '%Y-%m-%d %H:%i:%s.%f')
