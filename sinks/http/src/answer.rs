//! What the status of an answer means.

use std::time::Duration;

use reqwest::StatusCode;
use sendoff::{Outcome, Reason};

/// How often the relay asks again for an endpoint that is gone. It is answered without a request.
const GONE_PAUSE: Duration = Duration::from_secs(15 * 60);
/// The longest that an endpoint can keep all messages waiting by asking for it. One that is back earlier is found then.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// What all messages have in common. Where it is at fault every message would fare alike, so that the sink is down and
/// messages wait; where it is not, one endpoint must not stop the others, and it concerns this message alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shared {
    /// Scheme, host and port.
    pub(crate) origin: bool,
    /// The whole URL.
    pub(crate) url: bool,
    /// What we log in with.
    pub(crate) login: bool,
}

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) status: StatusCode,
    /// Whose.
    pub(crate) origin: &'a str,
    /// How large the body of the request was.
    pub(crate) size: usize,
    /// The endpoint's `Retry-After`.
    pub(crate) asked: Option<Duration>,
    /// Whether other messages were answered just now by what is behind the gateway: then there is no outage, and a
    /// message that makes a gateway give up must not hold up the rest for ever.
    pub(crate) serves_others: bool,
    /// Whether another message was taken just now, with the same login: then the login is right, and something about this
    /// message is refused.
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
            "redirects are not followed: set the url to where it leads, then retry the message",
        )),
        401 | 407 if shared.login && answer.takes_others => temporary(
            "it took another message just now with the same login; it is tried again, and if all are refused by then, \
             they wait",
        ),
        401 | 407 if shared.login => Outcome::SinkDown(said(
            "check the headers, the secrets and this machine's clock; messages wait until then",
        )),
        408 => temporary("it was too slow to take the request; it is tried again"),
        410 => gone(origin, shared),
        413 => Outcome::Permanent(Reason::new(format!(
            "{origin} answered {} to a body of {} bytes (raise its limit, then retry the message)",
            told(status),
            answer.size
        ))),
        425 => temporary("it is tried again"),
        429 => temporary("it has had too many requests; lower requests_per_host if this goes on"),
        400..=499 => Outcome::Permanent(said(
            "its log tells why it refuses this message; retry it once that is mended",
        )),
        _ if is_outage(status) && shared.origin && !answer.serves_others => {
            let asked = answer.asked.map(|delay| delay.min(LONGEST_PAUSE));
            Outcome::SinkDown(later(
                said("what is behind it does not answer; messages wait until it does"),
                asked,
            ))
        }
        500..=599 => temporary("its log tells why; it is tried again"),
        // Not a status of HTTP's: who knows what it means knows whether it arrived.
        _ => Outcome::Unknown(said("this is no status of HTTP: check what is listening there")),
    }
}

/// Whether a gateway says that nobody is behind it: the last three are what Cloudflare says.
pub(crate) fn is_outage(status: StatusCode) -> bool {
    matches!(status.as_u16(), 502..=504 | 521..=523)
}

fn later(reason: Reason, asked: Option<Duration>) -> Reason {
    match asked {
        Some(delay) => reason.retry_after(delay),
        None => reason,
    }
}

/// The endpoint wants no more messages. Nothing is lost: they wait, or are dead letters that can be retried.
pub(crate) fn gone(origin: &str, shared: Shared) -> Outcome {
    let said = format!("{origin} answered 410 Gone: it wants no more messages, and gets none until the relay restarts");
    if shared.url {
        let next = "correct the url, or take the sink out of its routes; messages wait";
        return Outcome::SinkDown(Reason::new(format!("{said} ({next})")).retry_after(GONE_PAUSE));
    }
    let next =
        "if that was a mistake, restart the relay, then retry the message; else discard it, and emit no more for it";
    Outcome::Permanent(format!("{said} ({next})").into())
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
                panic!("nobody is there");
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
