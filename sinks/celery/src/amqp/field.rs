//! Values of AMQP tables.

use sendoff::Result;

use crate::error::invalid;
use crate::python::{Text, Value};

/// An AMQP table, in the order of its entries.
pub type Table = Vec<(String, Field)>;

/// A value in an AMQP table. Each variant names AMQP's letter for its type.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// `V`: no value.
    Void,
    /// `t`: a boolean.
    Bool(bool),
    /// `I`: an integer of 32 bits.
    Int(i32),
    /// `L`: an integer of 64 bits.
    Long(i64),
    /// `d`: a float.
    Double(f64),
    /// `S`: text as bytes, because text from Python may contain lone surrogates.
    Text(Vec<u8>),
    /// `A`: an array.
    Array(Vec<Field>),
    /// `F`: a table.
    Table(Table),
}

impl Field {
    /// AMQP's letter for the type of the value.
    pub fn letter(&self) -> char {
        match self {
            Self::Void => 'V',
            Self::Bool(_) => 't',
            Self::Int(_) => 'I',
            Self::Long(_) => 'L',
            Self::Double(_) => 'd',
            Self::Text(_) => 'S',
            Self::Array(_) => 'A',
            Self::Table(_) => 'F',
        }
    }

    pub(super) fn of(value: Value) -> Result<Self> {
        Ok(match value {
            Value::Null => Self::Void,
            Value::Bool(value) => Self::Bool(value),
            Value::Int(digits) => int(&digits)?,
            Value::Float(_) => Self::Double(value.as_f64().unwrap_or(f64::NAN)),
            Value::Text(text) => Self::Text(text.into_bytes()),
            Value::List(items) => Self::Array(items.into_iter().map(Self::of).collect::<Result<_>>()?),
            Value::Map(entries) => Self::Table(table(entries)?),
        })
    }
}

/// Builds a table from headers.
pub(super) fn table(entries: Vec<(Text, Value)>) -> Result<Table> {
    entries
        .into_iter()
        .map(|(name, value)| Ok((short(name, "the name of a header")?, Field::of(value)?)))
        .collect()
}

/// AMQP's short strings have at most 255 bytes.
pub(super) fn short(text: Text, what: &str) -> Result<String> {
    match String::from_utf8(text.into_bytes()) {
        Ok(text) if text.len() <= 255 => Ok(text),
        Ok(text) => Err(invalid(
            format!("{what} is too long for RabbitMQ"),
            format!("it has {} bytes, and AMQP allows 255", text.len()),
            "emit the task with a shorter one",
        )),
        Err(_) => Err(invalid(
            format!("{what} cannot be sent to RabbitMQ"),
            "it contains a lone surrogate",
            "emit the task with valid text",
        )),
    }
}

fn int(digits: &str) -> Result<Field> {
    match digits.parse::<i64>() {
        // Celery's client treats the smallest 32-bit number as a 64-bit one.
        Ok(number) => Ok(match i32::try_from(number) {
            Ok(small) if small > i32::MIN => Field::Int(small),
            _ => Field::Long(number),
        }),
        Err(_) => Err(invalid(
            "a header of the task has a number that is too large for RabbitMQ",
            "it has more than 64 bits",
            "emit it as text",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_type_that_celery_gives_them() {
        let letter = |digits: &str| Field::of(Value::Int(digits.into())).map(|field| field.letter());
        assert_eq!(letter("2147483647").unwrap(), 'I');
        assert_eq!(letter("2147483648").unwrap(), 'L');
        assert_eq!(letter("-2147483647").unwrap(), 'I');
        assert_eq!(letter("-2147483648").unwrap(), 'L');
        assert_eq!(letter("-0").unwrap(), 'I');
        assert!(letter("9223372036854775808").is_err());
    }

    #[test]
    fn names_that_are_too_long_are_refused() {
        let entry = |length| vec![(Text::from("n".repeat(length)), Value::Null)];
        assert!(table(entry(255)).is_ok());
        assert!(table(entry(256)).is_err());
    }
}
