//! The error type: what happened, why, and what to do next.

use std::error::Error as StdError;
use std::fmt;

/// A source error of any type.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// The result type of Sendoff's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error. Callers decide by it how to react, so the project matches it exhaustively.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value from the caller is invalid: a setting, a message or a filter.
    Invalid,
    /// The database or broker cannot be reached, or dropped the connection.
    Unreachable,
    /// The outbox tables do not exist.
    SchemaMissing,
    /// The outbox tables are older than this program needs.
    SchemaTooOld,
    /// The outbox tables are newer than this program knows.
    SchemaTooNew,
    /// The relay or worker no longer holds the lease that it acts on.
    LeaseLost,
    /// A message with the same idempotency key exists within the deduplication window.
    Duplicate,
    /// The requested item does not exist.
    NotFound,
    /// The store or sink does not support this.
    Unsupported,
    /// The database denied access: a privilege is missing.
    Denied,
    /// The database was busy with another transaction: retry.
    Busy,
    /// A hook of the application failed.
    Hook,
    /// Any other error of the backend.
    Backend,
}

/// An error that a person can act on.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    why: Option<String>,
    next: Option<String>,
    source: Option<BoxError>,
}

impl Error {
    /// An error of `kind`; `what` says in a few words what failed.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            why: None,
            next: None,
            source: None,
        }
    }

    /// Adds the reason of the error.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Adds what the reader can do about the error.
    #[must_use]
    pub fn next_step(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What failed.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Why it failed, if known.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// What to do next, if there is advice.
    pub fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// Whether the same call may succeed later without any change.
    pub fn is_temporary(&self) -> bool {
        match self.kind {
            ErrorKind::Unreachable | ErrorKind::Busy => true,
            ErrorKind::Invalid
            | ErrorKind::SchemaMissing
            | ErrorKind::SchemaTooOld
            | ErrorKind::SchemaTooNew
            | ErrorKind::LeaseLost
            | ErrorKind::Duplicate
            | ErrorKind::NotFound
            | ErrorKind::Unsupported
            | ErrorKind::Denied
            | ErrorKind::Hook
            | ErrorKind::Backend => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(why) = &self.why {
            write!(f, ": {why}")?;
        }
        if let Some(next) = &self.next {
            write!(f, " ({next})")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The text of a driver's error with the texts of its sources: some drivers' errors only say "db error".
pub(crate) fn said_by(error: &(dyn StdError + 'static)) -> String {
    // First lines only: drivers may print the values of the row below them.
    let first_line = |error: &dyn StdError| error.to_string().lines().next().unwrap_or_default().to_owned();
    let mut why = first_line(error);
    for source in std::iter::successors(error.source(), |error| StdError::source(*error)) {
        let line = first_line(source);
        if !why.contains(&line) {
            why = format!("{why}: {line}");
        }
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_what_why_next() {
        let error = Error::new(ErrorKind::Unreachable, "cannot reach the database")
            .because("connection refused")
            .next_step("check that it runs");
        assert_eq!(
            error.to_string(),
            "cannot reach the database: connection refused (check that it runs)"
        );
        assert!(error.is_temporary());
    }
}
