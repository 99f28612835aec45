//! Failures of a handler.

use std::fmt;
use std::time::Duration;

/// Why a job failed, and whether it is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The job may succeed later: it is tried again after a growing delay, while it has attempts left.
    Transient(String),
    /// The job may succeed after exactly this delay, such as the one that a server asked for.
    RetryIn(Duration, String),
    /// The job will never succeed: it fails immediately, and an operator has to act.
    Permanent(String),
}

impl Failure {
    /// A failure after which the job is tried again, after a growing delay.
    pub fn transient(error: impl fmt::Display) -> Self {
        Self::Transient(error.to_string())
    }

    /// A failure after which the job is tried again, after this delay.
    pub fn retry_in(delay: Duration, error: impl fmt::Display) -> Self {
        Self::RetryIn(delay, error.to_string())
    }

    /// A failure after which the job is not tried again.
    pub fn permanent(error: impl fmt::Display) -> Self {
        Self::Permanent(error.to_string())
    }
}

/// Makes `?` work on errors of databases and clients: the job is tried again.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Transient(error.to_string())
    }
}
