//! Errors of handlers, and the outcomes they mean.

use std::time::Duration;

use sendoff::{BoxError, Outcome, Reason};

/// Why a handler failed.
///
/// `?` turns every `std::error::Error` into a transient one. The text, with those of its sources, is stored with the
/// `?` turns every `std::error::Error` into a transient error. The text of the error and its sources is stored with the
/// message and shown to operators: do not put payloads or secrets into it.
#[derive(Debug)]
pub struct HandlerError {
    source: BoxError,
    permanent: bool,
    retry_after: Option<Duration>,
}

impl HandlerError {
    /// An error after which the message is retried, because a later attempt may succeed.
    pub fn transient(source: impl Into<BoxError>) -> Self {
        Self {
            source: source.into(),
            permanent: false,
            retry_after: None,
        }
    }

    /// An error after which the message becomes a dead letter immediately, because no attempt can succeed.
    pub fn permanent(source: impl Into<BoxError>) -> Self {
        Self {
            permanent: true,
            ..Self::transient(source)
        }
    }

    /// Sets the shortest delay before the message is retried. A permanent error ignores it.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        let mut text = self.source.to_string();
        let mut next = self.source.source();
        while let Some(source) = next {
            let words = source.to_string();
            // Many errors already end with the text of their source.
            if !text.ends_with(&words) {
                text = format!("{text}: {words}");
            }
            next = source.source();
        }
        let reason = Reason::new(text);
        match (self.permanent, self.retry_after) {
            (true, _) => Outcome::Permanent(reason),
            (false, Some(delay)) => Outcome::Temporary(reason.retry_after(delay)),
            (false, None) => Outcome::Temporary(reason),
        }
    }
}

// HandlerError does not implement `Error`, so that this conversion can cover every error.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::transient(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the ledger refused")]
    struct Refused(#[source] std::num::ParseIntError);

    fn refused() -> Refused {
        Refused("x".parse::<u8>().unwrap_err())
    }

    #[test]
    fn any_error_is_transient_and_tells_its_sources() {
        let outcome = HandlerError::from(refused()).into_outcome();
        assert_eq!(
            outcome,
            Outcome::Temporary("the ledger refused: invalid digit found in string".into())
        );
    }

    #[test]
    fn a_delay_is_handed_on() {
        let outcome = HandlerError::transient("busy")
            .retry_after(Duration::from_secs(7))
            .into_outcome();
        assert_eq!(
            outcome,
            Outcome::Temporary(Reason::new("busy").retry_after(Duration::from_secs(7)))
        );
    }

    #[test]
    fn a_permanent_error_stays_permanent() {
        let outcome = HandlerError::permanent(refused())
            .retry_after(Duration::ZERO)
            .into_outcome();
        assert!(matches!(outcome, Outcome::Permanent(reason) if reason.asked_delay().is_none()));
    }
}
