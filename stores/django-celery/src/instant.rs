//! Points in time in a database without time zones: Django writes them in UTC.

use std::time::SystemTime;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use sendoff::Result;

use crate::error::odd_row;

/// A point in time out of its date and time in UTC.
pub(crate) fn in_utc(at: DateTime) -> Result<SystemTime> {
    let at = TimeZone::UTC
        .to_timestamp(at)
        .map_err(|error| odd_row(error.to_string()))?;
    Ok(at.into())
}

/// A point in time out of text, as Django writes it to SQLite.
pub(crate) fn from_text(text: &str) -> Result<SystemTime> {
    let at: DateTime = text.parse().map_err(|_| odd_row("created_at is not a timestamp"))?;
    in_utc(at)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn djangos_text_is_read_to_the_microsecond() {
        let second = UNIX_EPOCH + Duration::from_secs(1_763_233_423);
        for (text, micros) in [
            ("2025-11-15 19:03:43", 0),
            ("2025-11-15 19:03:43.551604", 551_604),
            ("2025-11-15T19:03:43.5", 500_000),
        ] {
            assert_eq!(from_text(text).unwrap(), second + Duration::from_micros(micros));
        }
        assert!(from_text("yesterday").is_err());
    }
}
