//! The options of a stored task, by name and type.

use sendoff::Result;
use sendoff_celery::OPTIONS;

use crate::error::{bad_option, invalid};
use crate::python::{Text, Value};

/// The options of a task, by name. A value is checked when it is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskOptions {
    entries: Vec<(Text, Value)>,
    stamped: Option<Vec<Text>>,
}

impl TaskOptions {
    /// Takes the options of a stored task.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for a name that is neither an option nor a stamp.
    pub fn new(entries: Vec<(Text, Value)>) -> Result<Self> {
        let mut options = Self { entries, stamped: None };
        options.stamped = options.stamp_names()?;
        let stamped = options.stamped.iter().flatten();
        if let Some(missing) = stamped.clone().find(|name| options.lookup(name).is_none()) {
            return Err(invalid(
                format!("the stamp {missing:?} of the task has no value"),
                "it is in stamped_headers, but not in the options",
                "emit the task with its value in the options",
            ));
        }
        let known = |name: &Text| name.as_str().is_some_and(|name| OPTIONS.contains(&name));
        let unknown = options
            .entries
            .iter()
            .map(|(name, _)| name)
            .find(|name| !known(name) && !stamped.clone().any(|stamp| stamp == *name));
        match unknown {
            None => Ok(options),
            Some(name) => Err(invalid(
                format!("the task has an unknown option {name:?}"),
                "Celery tasks have no option with this name",
                "correct the name, or put it into properties if it is a property of the message",
            )),
        }
    }

    fn lookup(&self, name: &Text) -> Option<&Value> {
        self.entries.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn stamp_names(&self) -> Result<Option<Vec<Text>>> {
        let expected = || bad_option("stamped_headers", "a list of names");
        match self.value("stamped_headers") {
            None => Ok(None),
            Some(Value::List(names)) => names
                .iter()
                .map(|name| match name {
                    Value::Text(name) => Ok(name.clone()),
                    _ => Err(expected()),
                })
                .collect::<Result<_>>()
                .map(Some),
            Some(_) => Err(expected()),
        }
    }

    /// The value of an option; `null` counts as not set.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let found = self
            .entries
            .iter()
            .find(|(key, _)| key.is(name))
            .map(|(_, value)| value);
        found.filter(|value| **value != Value::Null)
    }

    /// The names of the task's stamps if it has any, and all stamps.
    pub fn stamps(&self) -> (Option<&[Text]>, Vec<(Text, Value)>) {
        let stamps = self.stamped.iter().flatten();
        let with_values = stamps.filter_map(|name| Some((name.clone(), self.lookup(name)?.clone())));
        (self.stamped.as_deref(), with_values.collect())
    }

    /// Reads an option that is text.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when it is not text. The methods below fail in the same way.
    pub fn text(&self, name: &str) -> Result<Option<Text>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(bad_option(name, "text")),
        }
    }

    /// Reads an option that is a name: text without lone surrogates.
    ///
    /// # Errors
    /// As [`TaskOptions::text`].
    pub fn name(&self, name: &str) -> Result<Option<String>> {
        self.text(name)?
            .map(|text| {
                text.as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| bad_option(name, "valid text"))
            })
            .transpose()
    }

    /// Reads an option that is an integer from 0 to `largest`.
    ///
    /// # Errors
    /// As [`TaskOptions::text`].
    pub fn whole(&self, name: &str, largest: u32) -> Result<Option<u32>> {
        let expected = || bad_option(name, &format!("an integer from 0 to {largest}"));
        match self.value(name) {
            None => Ok(None),
            Some(Value::Int(digits)) => match digits.parse() {
                Ok(number) if number <= largest => Ok(Some(number)),
                _ => Err(expected()),
            },
            Some(_) => Err(expected()),
        }
    }

    /// Reads an option that is a number, with its original text.
    ///
    /// # Errors
    /// As [`TaskOptions::text`].
    pub fn number(&self, name: &str) -> Result<Option<&Value>> {
        match self.value(name) {
            None => Ok(None),
            Some(number @ (Value::Int(_) | Value::Float(_))) if number.as_f64().is_some_and(f64::is_finite) => {
                Ok(Some(number))
            }
            Some(_) => Err(bad_option(name, "a number")),
        }
    }

    /// Reads an option that is a boolean.
    ///
    /// # Errors
    /// As [`TaskOptions::text`].
    pub fn bool(&self, name: &str) -> Result<Option<bool>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(bad_option(name, "true or false")),
        }
    }

    /// Reads an option that is an object.
    ///
    /// # Errors
    /// As [`TaskOptions::text`].
    pub fn map(&self, name: &str) -> Result<&[(Text, Value)]> {
        match self.value(name) {
            None => Ok(&[]),
            Some(Value::Map(entries)) => Ok(entries),
            Some(_) => Err(bad_option(name, "an object")),
        }
    }

    /// Reads an option that is a signature or a list of signatures.
    ///
    /// # Errors
    /// As [`TaskOptions::text`].
    pub fn signatures(&self, name: &str) -> Result<Option<Value>> {
        let is_signature = |value: &Value| matches!(value.get("task"), Some(Value::Text(_)));
        match self.value(name) {
            None => Ok(None),
            Some(Value::List(list)) if list.iter().all(is_signature) => Ok(Some(Value::List(list.clone()))),
            Some(one) if is_signature(one) => Ok(Some(Value::List(vec![one.clone()]))),
            Some(_) => Err(bad_option(name, "a signature or a list of signatures")),
        }
    }
}
