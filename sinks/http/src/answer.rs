//! What the status of an answer means.

use std::time::Duration;

use reqwest::StatusCode;
use sendoff::{Outcome, Reason};

/// How often the relay asks again for an endpoint that is gone. It is answered without a request.
const GONE_PAUSE: Duration = Duration::from_secs(15 * 60);

/// Whether all messages go to the same URL. If so, what concerns the endpoint concerns the sink as a whole, and messages
/// wait for it; if not, one endpoint must not stop the others, and it concerns this message alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One URL for all.
    Sink,
    /// Each message has its own.
    Message,
}

/// The outcome of an answer by `origin`. `size` is how large the body was, `asked` the endpoint's `Retry-After`.
pub(crate) fn outcome(status: StatusCode, origin: &str, scope: Scope, size: usize, asked: Option<Duration>) -> Outcome {
    let said = |next: &str| Reason::new(format!("{origin} answered {} ({next})", told(status)));
    let temporary = |next: &str| {
        let reason = said(next);
        Outcome::Temporary(match asked {
            Some(delay) => reason.retry_after(delay),
            None => reason,
        })
    };
    match status.as_u16() {
        200..=299 => Outcome::Delivered,
        300..=399 => Outcome::Permanent(said(
            "redirects are not followed: set the url to where it leads, then retry the message",
        )),
        // The same credentials go with every message.
        401 | 407 if scope == Scope::Sink => Outcome::SinkDown(said(
            "check the headers, the secrets and this machine's clock; messages wait until then",
        )),
        408 => temporary("it was too slow to take the request; it is tried again"),
        410 => gone(origin, scope),
        413 => Outcome::Permanent(Reason::new(format!(
            "{origin} answered {} to a body of {size} bytes (raise its limit, then retry the message)",
            told(status)
        ))),
        425 => temporary("it is tried again"),
        429 => temporary("it has had too many requests; lower requests_per_host if this goes on"),
        400..=499 => Outcome::Permanent(said(
            "its log tells why it refuses this message; retry it once that is mended",
        )),
        500..=599 => temporary("its log tells why; it is tried again"),
        // Not a status of HTTP's: who knows what it means knows whether it arrived.
        _ => Outcome::Unknown(said("this is no status of HTTP: check what is listening there")),
    }
}

/// The endpoint wants no more messages. Nothing is lost: they wait, or are dead letters that can be retried.
pub(crate) fn gone(origin: &str, scope: Scope) -> Outcome {
    let said = format!("{origin} answered 410 Gone: it wants no more messages, and gets none until the relay restarts");
    match scope {
        Scope::Sink => Outcome::SinkDown(
            Reason::new(format!(
                "{said} (correct the url, or take the sink out of its routes; messages wait)"
            ))
            .retry_after(GONE_PAUSE),
        ),
        Scope::Message => Outcome::Permanent(format!("{said} (retry the message if that was a mistake)").into()),
    }
}

/// Number and name. The words that the endpoint itself sent may be anything.
fn told(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(name) => format!("{} {name}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, scope: Scope) -> &'static str {
        let status = StatusCode::from_u16(status).unwrap();
        match outcome(status, "https://h", scope, 3, Some(Duration::from_secs(7))) {
            Outcome::Delivered => "delivered",
            Outcome::Temporary(reason) => {
                assert_eq!(reason.asked_delay(), Some(Duration::from_secs(7)));
                "temporary"
            }
            Outcome::Permanent(_) => "permanent",
            Outcome::Unknown(_) => "unknown",
            Outcome::SinkDown(_) => "down",
        }
    }

    #[test]
    fn every_status_has_its_meaning() {
        for status in 100..=999 {
            let expected = match status {
                200..=299 => "delivered",
                408 | 425 | 429 | 500..=599 => "temporary",
                300..=499 => "permanent",
                _ => "unknown",
            };
            assert_eq!(kind(status, Scope::Message), expected, "{status}");
            let expected = match status {
                401 | 407 | 410 => "down",
                _ => expected,
            };
            assert_eq!(kind(status, Scope::Sink), expected, "{status}");
        }
    }

    #[test]
    fn a_body_that_is_too_large_is_told_with_its_size() {
        let Outcome::Permanent(reason) = outcome(StatusCode::PAYLOAD_TOO_LARGE, "https://h", Scope::Sink, 12_345, None)
        else {
            panic!("it can never work");
        };
        assert!(reason.text().contains("12345 bytes"), "{reason:?}");
    }
}
