//! Maps errors of the client and the broker to outcomes: of one message, or of the sink as a whole.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use lapin::protocol::{AMQPError, AMQPErrorKind, AMQPHardError, AMQPSoftError};
use sendoff::{Error, ErrorKind, Outcome, Reason};

use crate::publisher::Prepared;

/// How soon a blocking broker is tried again. It must be less than five seconds.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Why the broker cannot be used now.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    what: String,
    why: String,
    next: &'static str,
    /// Whether another attempt soon may succeed.
    pub(crate) passing: bool,
    ask_again: Option<Duration>,
    source: Option<Box<lapin::Error>>,
}

impl Failure {
    fn new(kind: ErrorKind, what: impl Into<String>, why: impl Into<String>, next: &'static str) -> Self {
        Self {
            kind,
            what: what.into(),
            why: why.into(),
            next,
            passing: false,
            ask_again: None,
            source: None,
        }
    }

    /// The broker is low on memory or disk, and reads nothing from publishers.
    pub(crate) fn blocked(why: &str) -> Self {
        let next = "free memory or disk on the broker, or consume from its queues; messages that were already sent may \
                    arrive later, with the same id";
        let mut failure = Self::new(ErrorKind::Busy, "RabbitMQ blocks publishers", why, next);
        failure.ask_again = Some(ASK_AGAIN);
        failure
    }

    pub(crate) fn silent(limit: Duration) -> Self {
        let why = format!("no answer within {limit:?}");
        let next = "check that RabbitMQ runs: rabbitmq-diagnostics check_running";
        Self::new(ErrorKind::Unreachable, "RabbitMQ does not answer", why, next)
    }

    pub(crate) fn closed() -> Self {
        let why = "the relay is stopping";
        Self::new(
            ErrorKind::Unreachable,
            "the RabbitMQ sink is closed",
            why,
            "start the relay again",
        )
    }

    /// Connecting failed.
    pub(crate) fn connecting(error: lapin::Error, place: &str) -> Self {
        let what = format!("cannot connect to RabbitMQ at {place}");
        let mut failure = match error.kind() {
            lapin::ErrorKind::IOError(io) => Self::io(what, io),
            lapin::ErrorKind::ProtocolError(refusal) => Self::refused(what, refusal),
            lapin::ErrorKind::InvalidProtocolVersion(_) | lapin::ErrorKind::ParsingError(_) => {
                let next = "set `url` of the sink to a RabbitMQ with AMQP 0-9-1; use amqps:// for its TLS port, amqp:// \
                            for the other";
                Self::new(ErrorKind::Invalid, what, "the server does not speak AMQP 0-9-1", next)
            }
            // The client's error type is non-exhaustive.
            _ => {
                let next = "check that RabbitMQ runs, and see its log";
                let mut failure = Self::new(ErrorKind::Unreachable, what, said(&error), next);
                failure.passing = true;
                failure
            }
        };
        failure.source = Some(Box::new(error));
        failure
    }

    fn io(what: String, error: &io::Error) -> Self {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(tls) = tls {
            let next = match tls {
                rustls::Error::InvalidCertificate(rustls::CertificateError::NotValidForName)
                | rustls::Error::InvalidCertificate(rustls::CertificateError::NotValidForNameContext { .. }) => {
                    "use the host name of the broker's certificate in `url` of the sink"
                }
                rustls::Error::InvalidCertificate(_) => {
                    "set `tls.ca_file` of the sink to the CA of the broker's certificate"
                }
                _ => "check the port (5671 is usual for TLS) and the certificates of both sides",
            };
            return Self::new(ErrorKind::Denied, what, tls.to_string(), next);
        }
        let next = match error.kind() {
            io::ErrorKind::ConnectionRefused => "start RabbitMQ, or correct host and port in `url` of the sink",
            io::ErrorKind::TimedOut => "check that RabbitMQ is running, and check the firewall",
            _ => "check that RabbitMQ is running, and check host and port in `url` of the sink",
        };
        let mut failure = Self::new(ErrorKind::Unreachable, what, error.to_string(), next);
        failure.passing = true;
        failure
    }

    fn refused(what: String, refusal: &AMQPError) -> Self {
        let why = refusal.get_message().as_str();
        let (kind, next) = match refusal.kind() {
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) => (
                ErrorKind::Denied,
                "correct `user` and `password` of the sink; check them with rabbitmqctl authenticate_user",
            ),
            AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED | AMQPHardError::INVALIDPATH) => (
                ErrorKind::Denied,
                "create the virtual host (rabbitmqctl add_vhost), and allow the user to use it (rabbitmqctl \
                 set_permissions)",
            ),
            AMQPErrorKind::Hard(AMQPHardError::CONNECTIONFORCED) => {
                (ErrorKind::Unreachable, "wait until RabbitMQ has restarted")
            }
            AMQPErrorKind::Soft(_) | AMQPErrorKind::Hard(_) => (ErrorKind::Backend, "see RabbitMQ's log"),
        };
        let mut failure = Self::new(kind, what, why, next);
        failure.passing = kind == ErrorKind::Unreachable;
        failure
    }

    /// The connection ended.
    pub(crate) fn lost(error: &lapin::Error) -> Self {
        let next = "nothing to do if RabbitMQ was restarted; otherwise see its log";
        let mut failure = Self::new(
            ErrorKind::Unreachable,
            "the connection to RabbitMQ was lost",
            said(error),
            next,
        );
        failure.passing = true;
        failure.source = Some(Box::new(error.clone()));
        failure
    }

    /// The exchange of the sink, or a queue to declare, is missing, refused, or has other properties.
    pub(crate) fn misplaced(error: AMQPError) -> Self {
        let (kind, next) = match error.kind() {
            AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND) => (ErrorKind::NotFound, MISSING),
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) => (ErrorKind::Denied, DENIED),
            AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED) => (
                ErrorKind::Invalid,
                "it exists with other properties; correct the settings of the sink, or set declare = \"off\"",
            ),
            AMQPErrorKind::Soft(_) | AMQPErrorKind::Hard(_) => (ErrorKind::Backend, "see RabbitMQ's log"),
        };
        let why = error.get_message().to_string();
        let mut failure = Self::new(kind, "RabbitMQ refused the exchange or the queue", why, next);
        failure.source = Some(Box::new(lapin::ErrorKind::ProtocolError(error).into()));
        failure
    }

    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    fn text(&self) -> String {
        format!("{}: {} ({})", self.what, self.why, self.next)
    }

    /// The outcome of messages that were not sent, or that a blocking broker does not read.
    pub(crate) fn outcome(&self) -> Outcome {
        let reason = Reason::new(self.text());
        Outcome::SinkDown(match self.ask_again {
            Some(delay) => reason.retry_after(delay),
            None => reason,
        })
    }

    /// The outcome of messages that caused it.
    pub(crate) fn permanent(&self) -> Outcome {
        Outcome::Permanent(format!("{}; then retry the message", self.text()).into())
    }

    /// The outcome of messages that were sent.
    pub(crate) fn unknown(&self) -> Outcome {
        Outcome::Unknown(format!("sent and not confirmed: {}", self.text()).into())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let error = Self::new(failure.kind, failure.what)
            .because(failure.why)
            .next_step(failure.next);
        match failure.source {
            Some(source) => error.with_source(*source),
            None => error,
        }
    }
}

impl From<sendoff::Error> for Failure {
    fn from(error: sendoff::Error) -> Self {
        let next = "correct the settings of the sink";
        Self::new(
            error.kind(),
            "the RabbitMQ sink cannot connect",
            error.to_string(),
            next,
        )
    }
}

const MISSING: &str = "declare it on the broker, or set `declare = \"active\"` of the sink";
const DENIED: &str = "allow the sink's user to write to it: rabbitmqctl set_permissions";

/// The broker closed the channel because of one message.
pub(crate) fn of_message(error: &AMQPError) -> Outcome {
    let why = error.get_message();
    let next = match error.kind() {
        AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND) => MISSING,
        AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) => DENIED,
        AMQPErrorKind::Soft(AMQPSoftError::CONTENTTOOLARGE | AMQPSoftError::PRECONDITIONFAILED) => {
            "raise RabbitMQ's max_message_size and `max_message_bytes` of the sink, or emit a smaller message"
        }
        AMQPErrorKind::Soft(AMQPSoftError::NOROUTE | AMQPSoftError::NOCONSUMERS | AMQPSoftError::RESOURCELOCKED)
        | AMQPErrorKind::Hard(_) => {
            return Outcome::Temporary(format!("RabbitMQ refused the message: {why} (see RabbitMQ's log)").into());
        }
    };
    Outcome::Permanent(format!("RabbitMQ refused the message: {why} ({next}; then retry the message)").into())
}

/// Whether the error is about an exchange, and not about a single message.
pub(crate) fn is_about_exchange(error: &AMQPError) -> bool {
    match error.kind() {
        AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND | AMQPSoftError::ACCESSREFUSED) => true,
        AMQPErrorKind::Soft(_) | AMQPErrorKind::Hard(_) => false,
    }
}

/// Whether the user may write to the exchange, but not with this routing key: a topic permission of RabbitMQ.
pub(crate) fn is_about_routing_key(error: &AMQPError) -> bool {
    matches!(error.kind(), AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED))
        && error.get_message().as_str().contains("access to topic")
}

/// Whether the exchange or queue exists with other properties.
pub(crate) fn is_about_properties(error: &AMQPError) -> bool {
    matches!(error.kind(), AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED))
}

/// The error with which the broker closed a channel and left the connection open.
pub(crate) fn channel_error(error: &lapin::Error) -> Option<&AMQPError> {
    match error.kind() {
        lapin::ErrorKind::ProtocolError(error) if matches!(error.kind(), AMQPErrorKind::Soft(_)) => Some(error),
        _ => None,
    }
}

/// Whether a single message may be the cause of the connection's end. The broker reports other causes.
pub(crate) fn may_be_due_to_a_message(error: &lapin::Error) -> bool {
    match error.kind() {
        lapin::ErrorKind::ProtocolError(error) => {
            !matches!(error.kind(), AMQPErrorKind::Hard(AMQPHardError::CONNECTIONFORCED))
        }
        lapin::ErrorKind::MissingHeartbeatError => false,
        // The client's error type is non-exhaustive.
        _ => true,
    }
}

/// No binding matches. With `mandatory` the broker returns the message, and does not keep it.
pub(crate) fn unroutable(message: &Prepared, code: u16, text: &str) -> Outcome {
    let (exchange, key) = (&message.exchange, &message.routing_key);
    let lack = if exchange.as_str().is_empty() {
        format!("the default exchange has no queue {key:?} (declare the queue")
    } else {
        format!(
            "no queue is bound to the exchange {:?} for the routing key {:?} (bind one, or set an \
             alternate-exchange for the exchange",
            exchange.as_str(),
            key.as_str()
        )
    };
    let reason = format!("RabbitMQ returned the message as unroutable, {code} {text}: {lack}; then retry the message)");
    Outcome::Permanent(reason.into())
}

/// A queue refused it: full with `overflow = reject-publish`, or without a leader.
pub(crate) fn nacked() -> Outcome {
    let reason = "RabbitMQ did not accept the message (nack): a queue is full and rejects messages, or cannot store \
                  them now (consume from the queue, or raise its limit)";
    Outcome::Temporary(reason.into())
}

/// The client's text, and those of its sources. They hold only names of a message.
fn said(error: &lapin::Error) -> String {
    if let lapin::ErrorKind::ProtocolError(error) = error.kind() {
        return error.get_message().to_string();
    }
    let mut said = error.to_string();
    for source in std::iter::successors(StdError::source(error), |error| StdError::source(*error)) {
        let text = source.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amqp(kind: impl Into<AMQPErrorKind>, text: &str) -> AMQPError {
        AMQPError::new(kind.into(), text.into())
    }

    fn connecting(error: AMQPError) -> Failure {
        Failure::connecting(lapin::ErrorKind::ProtocolError(error).into(), "amqp://host/")
    }

    #[test]
    fn a_refusal_says_what_why_and_next() {
        let failure = connecting(amqp(AMQPSoftError::ACCESSREFUSED, "login refused"));
        assert!(!failure.passing);
        let Outcome::SinkDown(reason) = failure.outcome() else {
            panic!("{failure:?}");
        };
        assert_eq!(
            reason.text(),
            "cannot connect to RabbitMQ at amqp://host/: login refused (correct `user` and `password` of the sink; check \
             them with rabbitmqctl authenticate_user)"
        );
        let error = Error::from(failure);
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Denied, reason.text())
        );
        assert!(connecting(amqp(AMQPHardError::CONNECTIONFORCED, "shutdown")).passing);
        assert!(
            connecting(amqp(AMQPHardError::NOTALLOWED, "vhost"))
                .text()
                .contains("add_vhost")
        );
    }

    #[test]
    fn a_blocked_broker_is_asked_again_within_five_seconds() {
        let Outcome::SinkDown(reason) = Failure::blocked("low on memory").outcome() else {
            panic!("a blocked broker must be down");
        };
        assert!(reason.asked_delay().unwrap() < Duration::from_secs(5));
        assert!(reason.text().contains("low on memory"));
    }

    #[test]
    fn what_can_never_work_for_a_message_is_permanent() {
        for (kind, word) in [
            (AMQPSoftError::NOTFOUND, "declare"),
            (AMQPSoftError::ACCESSREFUSED, "set_permissions"),
            (AMQPSoftError::CONTENTTOOLARGE, "max_message_size"),
            (AMQPSoftError::PRECONDITIONFAILED, "max_message_size"),
        ] {
            let outcome = of_message(&amqp(kind, "because"));
            assert!(
                matches!(&outcome, Outcome::Permanent(reason) if reason.text().contains(word) && reason.text().contains("because")),
                "{outcome:?}"
            );
        }
        assert!(matches!(
            of_message(&amqp(AMQPSoftError::RESOURCELOCKED, "locked")),
            Outcome::Temporary(_)
        ));
    }

    #[test]
    fn a_topic_that_is_refused_is_not_a_matter_of_the_exchange() {
        let refused = |text| is_about_routing_key(&amqp(AMQPSoftError::ACCESSREFUSED, text));
        assert!(!refused("access to exchange 'x' refused"));
        assert!(refused("access to topic 'k' in exchange 'x' refused"));
        assert!(is_about_exchange(&amqp(AMQPSoftError::NOTFOUND, "no exchange 'x'")));
        assert!(!is_about_exchange(&amqp(
            AMQPSoftError::PRECONDITIONFAILED,
            "too large"
        )));
    }
}
