//! What a handler says about an item that it could not work on.

use std::fmt;
use std::time::Duration;

/// Why an item failed, and whether it is worth trying again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may work later: tried again after a growing delay, as long as it has attempts.
    Transient(String),
    /// It may work after exactly this long, as a server told that asked to be left alone.
    RetryIn(Duration, String),
    /// It will never work: failed at once, for an operator to look at.
    Permanent(String),
}

impl Failure {
    /// It may work later.
    pub fn transient(error: impl fmt::Display) -> Self {
        Self::Transient(error.to_string())
    }

    /// It may work after this long.
    pub fn retry_in(delay: Duration, error: impl fmt::Display) -> Self {
        Self::RetryIn(delay, error.to_string())
    }

    /// It will never work.
    pub fn permanent(error: impl fmt::Display) -> Self {
        Self::Permanent(error.to_string())
    }
}

/// So that `?` works on a database's or a client's error: an error that says nothing about itself is worth another try.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Transient(error.to_string())
    }
}
