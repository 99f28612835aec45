//! Values that kombu marks with their Python type, and how Python prints them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::{Date, Time};
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;

use super::Value;
use super::decimal::canonical;

/// A value without a type in JSON.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Typed<'a> {
    DateTime(Date, Time, Option<Offset>),
    Date(Date),
    Time(Time, Option<Offset>),
    Decimal(&'a str),
    Uuid(uuid::Uuid),
    Bytes(Vec<u8>),
}

impl<'a> Typed<'a> {
    /// The value of a map with exactly the entries `__type__` and `__value__`; `None` for any other value, and for one
    /// that a worker could not parse either.
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        let Value::Map(entries) = value else { return None };
        let (Some(Value::Text(kind)), Some(inner), 2) = (value.get("__type__"), value.get("__value__"), entries.len())
        else {
            return None;
        };
        if kind.is("uuid") {
            let Some(Value::Text(hex)) = inner.get("hex") else {
                return None;
            };
            return uuid::Uuid::parse_str(hex.as_str()?).ok().map(Self::Uuid);
        }
        let Value::Text(text) = inner else { return None };
        let text = text.as_str()?;
        match kind.as_str()? {
            "datetime" => {
                let pieces = Pieces::parse(text).ok()?;
                Some(Self::DateTime(
                    pieces.date(),
                    pieces.time()?,
                    pieces.to_numeric_offset(),
                ))
            }
            "date" => text.parse().ok().map(Self::Date),
            "time" => {
                // Any day: an offset is parsed only with a date.
                let pieces = format!("2000-01-01T{text}");
                let pieces = Pieces::parse(&pieces).ok()?;
                Some(Self::Time(pieces.time()?, pieces.to_numeric_offset()))
            }
            "decimal" => Some(Self::Decimal(text)),
            "bytes" => Some(Self::Bytes(text.as_bytes().to_vec())),
            "base64" => STANDARD.decode(text).ok().map(Self::Bytes),
            _ => None,
        }
    }

    /// Python's `repr`; the caller prints bytes, because it cuts them.
    pub(super) fn repr(&self) -> String {
        match self {
            Self::DateTime(date, time, offset) => {
                let clock = clock(*time);
                let zone = offset.map(zone).unwrap_or_default();
                format!(
                    "datetime.datetime({}, {}, {}, {clock}{zone})",
                    date.year(),
                    date.month(),
                    date.day()
                )
            }
            Self::Date(date) => format!("datetime.date({}, {}, {})", date.year(), date.month(), date.day()),
            Self::Time(time, offset) => {
                let zone = offset.map(zone).unwrap_or_default();
                format!("datetime.time({}{zone})", clock(*time))
            }
            Self::Decimal(digits) => format!("Decimal('{}')", canonical(digits)),
            Self::Uuid(id) => format!("UUID('{id}')"),
            Self::Bytes(_) => String::new(),
        }
    }
}

/// Hours and minutes, then seconds and microseconds if they are not zero.
fn clock(time: Time) -> String {
    let micros = time.subsec_nanosecond() / 1000;
    let mut parts = vec![i32::from(time.hour()), i32::from(time.minute())];
    if time.second() != 0 || micros != 0 {
        parts.push(i32::from(time.second()));
    }
    if micros != 0 {
        parts.push(micros);
    }
    let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
    parts.join(", ")
}

fn zone(offset: Offset) -> String {
    let seconds = offset.seconds();
    match (seconds.div_euclid(86_400), seconds.rem_euclid(86_400)) {
        (0, 0) => ", tzinfo=datetime.timezone.utc".to_owned(),
        (0, seconds) => format!(", tzinfo=datetime.timezone(datetime.timedelta(seconds={seconds}))"),
        (days, seconds) => {
            format!(", tzinfo=datetime.timezone(datetime.timedelta(days={days}, seconds={seconds}))")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_values_print_as_in_python() {
        for (kind, text, printed) in [
            ("time", "07:08:09", "datetime.time(7, 8, 9)"),
            ("time", "07:08:00Z", "datetime.time(7, 8, tzinfo=datetime.timezone.utc)"),
            (
                "time",
                "07:08:09+02:00",
                "datetime.time(7, 8, 9, tzinfo=datetime.timezone(datetime.timedelta(seconds=7200)))",
            ),
            (
                "time",
                "07:08:00.5-05:30",
                "datetime.time(7, 8, 0, 500000, tzinfo=datetime.timezone(datetime.timedelta(days=-1, seconds=66600)))",
            ),
            ("decimal", "1e3", "Decimal('1E+3')"),
            ("date", "2031-05-06", "datetime.date(2031, 5, 6)"),
        ] {
            let value = Value::Map(vec![
                ("__type__".into(), kind.into()),
                ("__value__".into(), text.into()),
            ]);
            assert_eq!(Typed::of(&value).unwrap().repr(), printed);
        }
    }
}
