//! Times: when a task is due, and when it expires.

use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sendoff::Result;

use crate::error::bad_option;
use crate::python::{Text, Value};

/// A time, and its text for the worker.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moment {
    pub(super) text: Text,
    at: Timestamp,
}

impl Moment {
    /// This many seconds after `from`.
    pub(super) fn after(from: Timestamp, seconds: &Value, option: &str) -> Result<Self> {
        let out_of_range = || bad_option(option, "a number of seconds before the year 10000");
        let seconds = seconds.as_f64().ok_or_else(out_of_range)?;
        let micros = (seconds * 1e6).round();
        if micros.abs() > 1e18 {
            return Err(out_of_range());
        }
        let at = from
            .checked_add(SignedDuration::from_micros(micros as i64))
            .map_err(|_| out_of_range())?;
        Ok(Self {
            text: isoformat(at).into(),
            at,
        })
    }

    /// Parses a text; `zone` applies if it has no offset. The text is kept as it is.
    pub(super) fn read(text: &Text, zone: &TimeZone, option: &str) -> Result<Self> {
        let expected = || bad_option(option, "a time like 2031-05-06T07:08:09+00:00");
        let pieces = text
            .as_str()
            .and_then(|text| Pieces::parse(text).ok())
            .ok_or_else(expected)?;
        let time = pieces.time().ok_or_else(expected)?;
        let civil = pieces.date().to_datetime(time);
        let zone = match pieces.to_numeric_offset() {
            Some(offset) => TimeZone::fixed(offset),
            None => zone.clone(),
        };
        Ok(Self {
            text: text.clone(),
            at: zone.to_timestamp(civil).map_err(|_| expected())?,
        })
    }

    /// Seconds from `now`; negative when it has passed.
    pub(super) fn seconds_from(&self, now: Timestamp) -> f64 {
        self.at.duration_since(now).as_secs_f64()
    }

    /// Whole milliseconds from `now`; 0 when it has passed.
    pub(super) fn millis_from(&self, now: Timestamp) -> u64 {
        u64::try_from(self.at.duration_since(now).as_millis()).unwrap_or(0)
    }
}

/// Python's format of a time in UTC: microseconds only if they are not 0.
fn isoformat(at: Timestamp) -> String {
    let form = if at.as_microsecond() % 1_000_000 == 0 {
        "%Y-%m-%dT%H:%M:%S+00:00"
    } else {
        "%Y-%m-%dT%H:%M:%S.%6f+00:00"
    };
    at.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn delays_are_counted_to_the_microsecond() {
        let from = at("2026-11-15T19:06:03.657055Z");
        let after = |number: Value| Moment::after(from, &number, "countdown").unwrap().text;
        assert!(after(Value::Int("3600".into())).is("2026-11-15T20:06:03.657055+00:00"));
        assert!(after(Value::Float("0.342945".into())).is("2026-11-15T19:06:04+00:00"));
        assert!(after(Value::Float("-1.5".into())).is("2026-11-15T19:06:02.157055+00:00"));
        for bad in ["1e300", "1e12"] {
            assert!(Moment::after(from, &Value::Float(bad.into()), "expires").is_err());
        }
    }

    #[test]
    fn texts_are_read_with_and_without_an_offset() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let now = at("2031-05-06T05:08:00Z");
        let seconds = |text: &str| Moment::read(&text.into(), &berlin, "eta").unwrap().seconds_from(now);
        assert_eq!(seconds("2031-05-06T07:08:09"), 9.0);
        assert_eq!(seconds("2031-05-06 05:08:09.5Z"), 9.5);
        assert_eq!(seconds("2031-05-06T07:08:09.000000001+02:00").floor(), 9.0);
        for bad in ["", "tomorrow", "2031-05-06", "12"] {
            assert!(Moment::read(&bad.into(), &berlin, "eta").is_err(), "{bad}");
        }
        let past = Moment::read(&"2031-05-06T05:07:00Z".into(), &berlin, "expires").unwrap();
        assert_eq!((past.millis_from(now), past.seconds_from(now)), (0, -60.0));
    }
}
