//! Arguments of types that JSON does not have, in Celery's format.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Uuid;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::moment::iso8601;

/// An argument that a worker receives as a Python object of the right type, not as text.
///
/// ```
/// use sendoff_celery::{Task, Typed};
///
/// # fn main() -> Result<(), sendoff::Error> {
/// let id = sendoff::Uuid::nil();
/// let task = Task::new("shop.tasks.charge").args((Typed::uuid(id), Typed::decimal("12.50")))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    kind: &'static str,
    value: String,
}

impl Typed {
    /// An argument of Python's type `uuid.UUID`.
    pub fn uuid(id: Uuid) -> Self {
        Self::of("uuid", id.simple().to_string())
    }

    /// An argument of Python's type `decimal.Decimal`, from its digits or from any decimal type that prints them.
    pub fn decimal(number: impl ToString) -> Self {
        Self::of("decimal", number.to_string())
    }

    /// An argument of Python's type `datetime.datetime`, in UTC.
    pub fn datetime(at: SystemTime) -> Self {
        Self::of("datetime", iso8601(at))
    }

    /// An argument of Python's type `datetime.date`, from text such as `2031-05-06`.
    pub fn date(day: impl ToString) -> Self {
        Self::of("date", day.to_string())
    }

    /// An argument of Python's type `datetime.time`, from text such as `07:08:09`.
    pub fn time(time: impl ToString) -> Self {
        Self::of("time", time.to_string())
    }

    /// An argument of Python's type `bytes`.
    pub fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        match std::str::from_utf8(bytes.as_ref()) {
            Ok(text) => Self::of("bytes", text.to_owned()),
            Err(_) => Self::of("base64", STANDARD.encode(bytes)),
        }
    }

    fn of(kind: &'static str, value: String) -> Self {
        Self { kind, value }
    }
}

impl Serialize for Typed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Hex<'a> {
            hex: &'a str,
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("__type__", self.kind)?;
        if self.kind == "uuid" {
            map.serialize_entry("__value__", &Hex { hex: &self.value })?;
        } else {
            map.serialize_entry("__value__", &self.value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_arguments_are_written_as_kombu_writes_them() {
        let json = |typed: Typed| serde_json::to_string(&typed).unwrap();
        assert_eq!(
            json(Typed::uuid(Uuid::from_u128(1))),
            r#"{"__type__":"uuid","__value__":{"hex":"00000000000000000000000000000001"}}"#
        );
        assert_eq!(
            json(Typed::decimal("1.10")),
            r#"{"__type__":"decimal","__value__":"1.10"}"#
        );
        assert_eq!(
            json(Typed::bytes(b"a\0")),
            r#"{"__type__":"bytes","__value__":"a\u0000"}"#
        );
        assert_eq!(
            json(Typed::bytes([0, 255])),
            r#"{"__type__":"base64","__value__":"AP8="}"#
        );
        assert_eq!(
            json(Typed::datetime(SystemTime::UNIX_EPOCH)),
            r#"{"__type__":"datetime","__value__":"1970-01-01T00:00:00+00:00"}"#
        );
    }
}
