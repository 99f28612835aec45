//! Values that kombu marks with their Python type: what they are, and how Python prints them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::{Date, Time};
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;

use super::Value;

/// A value that JSON has no type for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Typed<'a> {
    DateTime(Date, Time, Option<Offset>),
    Date(Date),
    Time(Time),
    Decimal(&'a str),
    Uuid(uuid::Uuid),
    Bytes(Vec<u8>),
}

impl<'a> Typed<'a> {
    /// What a map with exactly the entries `__type__` and `__value__` stands for; `None` for any other value, and for
    /// one that a worker could not read either.
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
            "time" => text.parse().ok().map(Self::Time),
            "decimal" => Some(Self::Decimal(text)),
            "bytes" => Some(Self::Bytes(text.as_bytes().to_vec())),
            "base64" => STANDARD.decode(text).ok().map(Self::Bytes),
            _ => None,
        }
    }

    /// What `repr` prints; bytes are printed by the caller, who cuts them.
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
            Self::Time(time) => format!("datetime.time({})", clock(*time)),
            Self::Decimal(digits) => format!("Decimal('{digits}')"),
            Self::Uuid(id) => format!("UUID('{id}')"),
            Self::Bytes(_) => String::new(),
        }
    }
}

/// Hours and minutes, then seconds and microseconds as far as they are not zero.
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
