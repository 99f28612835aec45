//! Points in time and delays in stored tasks.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// ISO 8601 in UTC, like Python's `isoformat`: microseconds only if they are not 0.
pub(super) fn iso8601(at: SystemTime) -> String {
    let limit = if at < SystemTime::UNIX_EPOCH {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    let at = Timestamp::try_from(at).unwrap_or(limit);
    let form = if at.subsec_microsecond() == 0 && at.subsec_millisecond() == 0 {
        "%Y-%m-%dT%H:%M:%S+00:00"
    } else {
        "%Y-%m-%dT%H:%M:%S.%6f+00:00"
    };
    at.strftime(form).to_string()
}

/// A number of seconds with as many digits as needed, down to microseconds.
pub(super) fn seconds(delay: Duration) -> String {
    let (whole, micros) = (delay.as_secs(), delay.subsec_micros());
    if micros == 0 {
        return whole.to_string();
    }
    format!("{whole}.{micros:06}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_python_does() {
        let at = |micros| SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        assert_eq!(iso8601(at(0)), "1970-01-01T00:00:00+00:00");
        assert_eq!(iso8601(at(1_935_904_089_123_456)), "2031-05-07T07:08:09.123456+00:00");
        assert_eq!(iso8601(at(100_000)), "1970-01-01T00:00:00.100000+00:00");
        assert_eq!(
            iso8601(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 50)).get(..4),
            Some("9999")
        );
    }

    #[test]
    fn delays_lose_no_digits_and_gain_none() {
        assert_eq!(seconds(Duration::from_secs(300)), "300");
        assert_eq!(seconds(Duration::from_millis(1500)), "1.5");
        assert_eq!(seconds(Duration::from_micros(1)), "0.000001");
        assert_eq!(seconds(Duration::MAX), "18446744073709551615.999999");
    }
}
