//! The headers of a message.

use std::collections::BTreeMap;
use std::collections::btree_map;

use crate::{Error, ErrorKind, Result};

/// Headers of a message: names to values, in the order of their names.
///
/// They carry the trace context (`traceparent`, `tracestate`, `baggage`, `sentry-trace`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// No headers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the header `name`, replacing its old value.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// The value of the header `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of headers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All headers, sorted by name.
    pub fn iter(&self) -> btree_map::Iter<'_, String, String> {
        self.0.iter()
    }

    /// The headers as the JSON object that stores keep; `None` when there are no headers.
    pub fn to_json(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        // A map of strings to strings always serialises.
        serde_json::to_string(&self.0).ok()
    }

    /// Parses the text of [`Headers::to_json`], or of a producer in another language.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the text is not a JSON object of strings.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map(Self).map_err(|error| {
            // The source error may quote a value, and a header may contain a secret, so only its position is printed.
            Error::new(ErrorKind::Invalid, "the headers are not a JSON object of strings")
                .because(format!("line {}, column {}", error.line(), error.column()))
                .next_step("store headers as {\"name\": \"value\"}, or leave the column NULL")
        })
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = (&'a String, &'a String);
    type IntoIter = btree_map::Iter<'a, String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_their_json() {
        let headers = Headers::from_iter([("traceparent", "00-ab"), ("quote", "\"\u{e9}")]);
        let json = headers.to_json().unwrap();
        assert_eq!(Headers::from_json(&json).unwrap(), headers);
        assert_eq!(Headers::new().to_json(), None);
    }

    #[test]
    fn bad_headers_are_refused_without_their_values() {
        let error = Headers::from_json(r#"{"secret": ["hunter2"]}"#).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}
