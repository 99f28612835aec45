//! Durations in configuration and flags: `250ms`, `10s`, `1h30m`, `7d`.
//!
//! For a setting: `#[serde(with = "sendoff_wire::duration")]`, or [`option`] and [`or_off`].

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serializer};

const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

const EXPECTED: &str = "a duration like 250ms, 10s, 5m, 1h or 7d";

/// Parses a duration from a flag.
///
/// # Errors
/// A text that shows how to write a duration.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse(text).ok_or_else(|| format!("use {EXPECTED}"))
}

/// Parses a duration from a configuration.
///
/// # Errors
/// An error of the format when the value is not a duration.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_str(DurationText)
}

/// Writes a duration in the form that [`deserialize`] parses.
///
/// # Errors
/// An error of the format.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// A setting that is a duration and may be left out.
pub mod option {
    use super::{Deserializer, Duration, Serializer};

    /// Parses an optional duration from a configuration.
    ///
    /// # Errors
    /// As [`super::deserialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }

    /// Writes an optional duration in the form that [`deserialize`] parses.
    ///
    /// # Errors
    /// As [`super::serialize`].
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }
}

/// A setting that is a duration, or `off`.
pub mod or_off {
    use super::{Deserializer, Duration, DurationOrOff, Serializer};

    /// Parses a duration or `off` from a configuration.
    ///
    /// # Errors
    /// An error of the format when the value is neither a duration nor `off`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        deserializer.deserialize_str(DurationOrOff)
    }

    /// Writes a duration or `off` in the form that [`deserialize`] parses.
    ///
    /// # Errors
    /// As [`super::serialize`].
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_str("off"),
        }
    }
}

struct DurationText;

impl Visitor<'_> for DurationText {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

struct DurationOrOff;

impl Visitor<'_> for DurationOrOff {
    type Value = Option<Duration>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{EXPECTED}, or off")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<Duration>, E> {
        match parse(text) {
            _ if text == "off" => Ok(None),
            Some(duration) if !duration.is_zero() => Ok(Some(duration)),
            // Zero would mean "not kept"; `off` is the way to write that.
            Some(_) | None => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut millis = 0_u64;
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (_, factor) = UNITS.iter().find(|(unit, _)| *unit == &rest[..letters])?;
        millis = millis.checked_add(number.checked_mul(*factor)?)?;
        rest = rest[letters..].trim_start();
        if rest.is_empty() {
            return Some(Duration::from_millis(millis));
        }
    }
}

fn format(duration: Duration) -> String {
    let mut millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, factor) in UNITS {
        let count = millis / factor;
        millis %= factor;
        if count > 0 {
            text += &format!("{count}{unit}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_alike() {
        for (text, millis) in [
            ("250ms", 250),
            ("10s", 10_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(format(Duration::from_millis(millis)), text);
        }
        assert_eq!(parse(" 1m 30s "), Some(Duration::from_secs(90)));
        assert_eq!(format(Duration::from_millis(90_000)), "1m30s");
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "",
            "10",
            "s",
            "10x",
            "-1s",
            "1.5s",
            "1s,",
            "99999999999999999999s",
            "999999999999999999d",
            "10 s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
