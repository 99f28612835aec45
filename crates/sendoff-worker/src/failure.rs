//! Failures of a handler.

use std::fmt;
use std::time::Duration;

/// Why a job failed, and whether it is worth trying again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may succeed later: it is tried again after a growing delay, while it has attempts left.
    Transient(String),
    /// It may succeed after exactly this delay, such as the one that a server asked for.
    RetryIn(Duration, String),
    /// It will never succeed: it is failed immediately, and an operator has to act.
    Permanent(String),
}

impl Failure {
    /// It may succeed later.
    pub fn transient(error: impl fmt::Display) -> Self {
        Self::Transient(error.to_string())
    }

    /// It may succeed after this delay.
    pub fn retry_in(delay: Duration, error: impl fmt::Display) -> Self {
        Self::RetryIn(delay, error.to_string())
    }

    /// It will never succeed.
    pub fn permanent(error: impl fmt::Display) -> Self {
        Self::Permanent(error.to_string())
    }
}

/// Makes `?` work on errors of databases and clients: an error of unknown kind is tried again.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Transient(error.to_string())
    }
}
