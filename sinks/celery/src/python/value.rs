//! A JSON value with Python's types.

use std::collections::HashMap;

use super::Text;

/// A Python value from JSON. Numbers keep their original text, so that no digit is lost; the entries of a map keep
/// their order.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Python's `None`.
    Null,
    /// Python's `True` or `False`.
    Bool(bool),
    /// A Python `int`, of any length.
    Int(String),
    /// A Python `float`, including `NaN`, `Infinity` and `-Infinity`.
    Float(String),
    /// A Python `str`.
    Text(Text),
    /// A Python `list`.
    List(Vec<Value>),
    /// A Python `dict`.
    Map(Vec<(Text, Value)>),
}

impl Value {
    /// The entry with this name, if the value is a map.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Map(entries) => entries.iter().find(|(key, _)| key.is(name)).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Sets an entry in a list of entries; an existing one keeps its position.
    pub(crate) fn set(entries: &mut Vec<(Text, Value)>, name: Text, value: Value) {
        match entries.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => *old = value,
            None => entries.push((name, value)),
        }
    }

    /// The same for many entries, with one lookup each, because a task may have any number of them.
    pub(crate) fn set_all<'a>(entries: &mut Vec<(Text, Value)>, more: impl IntoIterator<Item = &'a (Text, Value)>) {
        let mut more = more.into_iter().peekable();
        if more.peek().is_none() {
            return;
        }
        let mut places: HashMap<Text, usize> = entries.iter().map(|(name, _)| name.clone()).zip(0..).collect();
        for (name, value) in more {
            match places.get(name) {
                Some(place) => entries[*place].1 = value.clone(),
                None => {
                    places.insert(name.clone(), entries.len());
                    entries.push((name.clone(), value.clone()));
                }
            }
        }
    }

    /// The value as a number, with the precision of a float.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(digits) => digits.parse().ok(),
            Self::Float(digits) => Some(super::float::parse(digits)),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number.to_string())
    }
}
