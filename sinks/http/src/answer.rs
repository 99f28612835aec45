//! Maps the status of an answer to an outcome.

use std::time::Duration;

use reqwest::StatusCode;
use sendoff::{Outcome, Reason};

/// How often the relay tries again after a 410. The sink answers without sending a request.
const GONE_PAUSE: Duration = Duration::from_secs(15 * 60);
/// The upper limit of a `Retry-After` that stops the whole sink, so that a recovered endpoint is found in time.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// What all messages of the sink share. If a shared part fails, every message would fail, so the sink is down and
/// messages are deferred. If it is not shared, one endpoint must not stop the others: only this message fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shared {
    /// Scheme, host and port.
    pub(crate) origin: bool,
    /// The whole URL.
    pub(crate) url: bool,
    /// The login.
    pub(crate) login: bool,
}

/// An answer and what is known about its host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) status: StatusCode,
    /// Scheme, host and port of the endpoint.
    pub(crate) origin: &'a str,
    /// The size of the request's body.
    pub(crate) size: usize,
    /// The endpoint's `Retry-After`.
    pub(crate) asked: Option<Duration>,
    /// Whether the server behind the gateway answered other messages just now. Then there is no outage, and a message
    /// that makes the gateway give up must not stop the rest forever.
    pub(crate) serves_others: bool,
    /// Whether the endpoint accepted another message just now, with the same login. Then the login is right, and the
    /// refusal is about this message.
    pub(crate) takes_others: bool,
}

/// The outcome of an answer.
pub(crate) fn outcome(answer: Answer<'_>, shared: Shared) -> Outcome {
    let Answer { status, origin, .. } = answer;
    let said = |next: &str| Reason::new(format!("{origin} answered {} ({next})", told(status)));
    let temporary = |next: &str| Outcome::Temporary(later(said(next), answer.asked));
    match status.as_u16() {
        200..=299 => Outcome::Delivered,
        300..=399 => Outcome::Permanent(said(
            "redirects are not followed; set url to the new address, then retry the message",
        )),
        401 | 407 if shared.login && answer.takes_others => temporary(
            "the endpoint accepted another message just now with the same login; the message is tried again, and if \
             all messages are refused by then, they are deferred",
        ),
        401 | 407 if shared.login => Outcome::SinkDown(said(
            "check `headers` and `secrets` of the sink, and this machine's clock; messages are deferred until then",
        )),
        408 => temporary("the endpoint read the request too slowly; the message is tried again"),
        410 => gone(origin, shared),
        413 => Outcome::Permanent(Reason::new(format!(
            "{origin} answered {} to a body of {} bytes (raise the endpoint's limit, then retry the message)",
            told(status),
            answer.size
        ))),
        425 => temporary("the message is tried again"),
        429 => temporary("too many requests; lower `requests_per_host` of the sink if this continues"),
        400..=499 => Outcome::Permanent(said(
            "see the endpoint's log for the cause, correct it, then retry the message",
        )),
        _ if is_outage(status) && shared.origin && !answer.serves_others => {
            let asked = answer.asked.map(|delay| delay.min(LONGEST_PAUSE));
            Outcome::SinkDown(later(
                said("the server behind the gateway does not answer; messages are deferred until it does"),
                asked,
            ))
        }
        500..=599 => temporary("see the endpoint's log; the message is tried again"),
        // With a status outside HTTP it is unknown whether the message arrived.
        _ => Outcome::Unknown(said("this is not an HTTP status; check which program listens there")),
    }
}

/// Whether a gateway reports that the server behind it is down. 521 to 523 are Cloudflare's codes.
pub(crate) fn is_outage(status: StatusCode) -> bool {
    matches!(status.as_u16(), 502..=504 | 521..=523)
}

fn later(reason: Reason, asked: Option<Duration>) -> Reason {
    match asked {
        Some(delay) => reason.retry_after(delay),
        None => reason,
    }
}

/// The endpoint refuses all further messages. Nothing is lost: they are deferred, or dead letters that can be retried.
pub(crate) fn gone(origin: &str, shared: Shared) -> Outcome {
    let said =
        format!("{origin} answered 410 Gone: it accepts no more messages, and none are sent until the relay restarts");
    if shared.url {
        let next = "correct url, or remove the sink from its routes; messages are deferred";
        return Outcome::SinkDown(Reason::new(format!("{said} ({next})")).retry_after(GONE_PAUSE));
    }
    let next = "if 410 was a mistake, restart the relay, then retry the message; otherwise discard it";
    Outcome::Permanent(format!("{said} ({next})").into())
}

/// The number and the standard name. The endpoint's own text is not repeated, because it may be anything.
fn told(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(name) => format!("{} {name}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Shared = Shared {
        origin: false,
        url: false,
        login: false,
    };
    const HOST: Shared = Shared { origin: true, ..OWN };
    const ALL: Shared = Shared {
        origin: true,
        url: true,
        login: true,
    };
    const DELAY: Duration = Duration::from_secs(7);

    fn answer(status: u16) -> Answer<'static> {
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            origin: "https://h",
            size: 12_345,
            asked: Some(DELAY),
            serves_others: false,
            takes_others: false,
        }
    }

    fn kind(answer: Answer<'_>, shared: Shared) -> &'static str {
        match outcome(answer, shared) {
            Outcome::Delivered => "delivered",
            Outcome::Temporary(reason) => {
                assert_eq!(reason.asked_delay(), Some(DELAY));
                "temporary"
            }
            Outcome::Permanent(_) => "permanent",
            Outcome::Unknown(_) => "unknown",
            Outcome::SinkDown(_) => "down",
            Outcome::NotYet(_) => "not yet",
        }
    }

    #[test]
    fn every_status_has_its_meaning() {
        for status in 100..=999 {
            let own = match status {
                200..=299 => "delivered",
                408 | 425 | 429 | 500..=599 => "temporary",
                300..=499 => "permanent",
                _ => "unknown",
            };
            assert_eq!(kind(answer(status), OWN), own, "{status}");
            let host = match status {
                502 | 503 | 504 | 521 | 522 | 523 => "down",
                _ => own,
            };
            assert_eq!(kind(answer(status), HOST), host, "{status}");
            let all = match status {
                401 | 407 | 410 => "down",
                _ => host,
            };
            assert_eq!(kind(answer(status), ALL), all, "{status}");
        }
    }

    #[test]
    fn a_message_that_alone_makes_a_gateway_give_up_is_charged() {
        let alone = Answer {
            serves_others: true,
            ..answer(504)
        };
        assert_eq!(kind(alone, ALL), "temporary");
    }

    #[test]
    fn a_message_that_alone_is_refused_as_if_the_login_were_wrong_is_charged() {
        for status in [401, 407] {
            let alone = Answer {
                takes_others: true,
                ..answer(status)
            };
            assert_eq!(kind(alone, ALL), "temporary");
            assert_eq!(kind(alone, OWN), "permanent");
        }
    }

    #[test]
    fn an_endpoint_cannot_stop_all_messages_for_a_day() {
        for (asked, delay) in [(7, 7), (86_400, 900)] {
            let asked = Some(Duration::from_secs(asked));
            let Outcome::SinkDown(reason) = outcome(Answer { asked, ..answer(503) }, HOST) else {
                panic!("the endpoint is down");
            };
            assert_eq!(reason.asked_delay(), Some(Duration::from_secs(delay)));
        }
    }

    #[test]
    fn a_body_that_is_too_large_is_told_with_its_size() {
        let Outcome::Permanent(reason) = outcome(answer(413), ALL) else {
            panic!("it can never work");
        };
        assert!(reason.text().contains("12345 bytes"), "{reason:?}");
    }
}
