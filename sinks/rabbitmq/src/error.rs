//! What an error of the client or the broker means, and for whom: for one message, or for the sink as a whole.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use lapin::protocol::{AMQPError, AMQPErrorKind, AMQPHardError, AMQPSoftError};
use sendoff::{Error, ErrorKind, Outcome, Reason};

use crate::publisher::Prepared;

/// How soon a broker that blocks us is asked again. It has to be less than five seconds.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Why the broker cannot be used now.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    what: String,
    why: String,
    next: &'static str,
    /// Whether another try a moment later may work.
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

    /// The broker has run low on memory or disk, and reads nothing from those who publish.
    pub(crate) fn blocked(why: &str) -> Self {
        let next = "free memory or disk on the broker, or consume from its queues; copies that were on their way may \
                    arrive when it goes on, with the same id";
        let mut failure = Self::new(ErrorKind::Busy, "RabbitMQ blocks publishers", why, next);
        failure.ask_again = Some(ASK_AGAIN);
        failure
    }

    pub(crate) fn silent(limit: Duration) -> Self {
        let why = format!("it gave no answer within {limit:?}");
        let next = "check that it is alive: rabbitmq-diagnostics check_running";
        Self::new(ErrorKind::Unreachable, "RabbitMQ cannot be used", why, next)
    }

    pub(crate) fn closed() -> Self {
        let why = "the relay is stopping";
        Self::new(
            ErrorKind::Unreachable,
            "RabbitMQ is not used any more",
            why,
            "start the relay",
        )
    }

    /// Connecting did not work.
    pub(crate) fn connecting(error: lapin::Error, place: &str) -> Self {
        let what = format!("cannot connect to RabbitMQ at {place}");
        let mut failure = match error.kind() {
            lapin::ErrorKind::IOError(io) => Self::io(what, io),
            lapin::ErrorKind::ProtocolError(refusal) => Self::refused(what, refusal),
            lapin::ErrorKind::InvalidProtocolVersion(_) | lapin::ErrorKind::ParsingError(_) => {
                let next =
                    "give the address of a RabbitMQ with AMQP 0-9-1; amqps:// for its TLS port, amqp:// for the other";
                Self::new(ErrorKind::Invalid, what, "the far side does not speak AMQP 0-9-1", next)
            }
            // The client lets others match on it only with this arm.
            _ => {
                let next = "check that it is alive, and its log";
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
                    "use the host name that the broker's certificate is for"
                }
                rustls::Error::InvalidCertificate(_) => "set tls.ca_file to the authority of the broker's certificate",
                _ => "check the port (5671 is usual for TLS) and the certificates of both sides",
            };
            return Self::new(ErrorKind::Denied, what, tls.to_string(), next);
        }
        let next = match error.kind() {
            io::ErrorKind::ConnectionRefused => "start RabbitMQ, or correct host and port in the sink's url",
            io::ErrorKind::TimedOut => "check that a firewall lets us through and that RabbitMQ is alive",
            _ => "check that RabbitMQ is alive, and host and port in the sink's url",
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
                "correct user and password: rabbitmqctl authenticate_user",
            ),
            AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED | AMQPHardError::INVALIDPATH) => (
                ErrorKind::Denied,
                "create the virtual host (rabbitmqctl add_vhost) and let the user in (rabbitmqctl set_permissions)",
            ),
            AMQPErrorKind::Hard(AMQPHardError::CONNECTIONFORCED) => {
                (ErrorKind::Unreachable, "wait until RabbitMQ has started again")
            }
            AMQPErrorKind::Soft(_) | AMQPErrorKind::Hard(_) => (ErrorKind::Backend, "look into RabbitMQ's log"),
        };
        let mut failure = Self::new(kind, what, why, next);
        failure.passing = kind == ErrorKind::Unreachable;
        failure
    }

    /// The connection ended.
    pub(crate) fn lost(error: &lapin::Error) -> Self {
        let next = "nothing to do if RabbitMQ was restarted; otherwise look into its log";
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

    /// The one exchange of the sink, or a queue that was to be declared, is not as it should be.
    pub(crate) fn misplaced(error: AMQPError) -> Self {
        let (kind, next) = match error.kind() {
            AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND) => (ErrorKind::NotFound, MISSING),
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) => (ErrorKind::Denied, DENIED),
            AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED) => (
                ErrorKind::Invalid,
                "it exists with other properties: correct the sink's settings, or set declare = \"off\"",
            ),
            AMQPErrorKind::Soft(_) | AMQPErrorKind::Hard(_) => (ErrorKind::Backend, "look into RabbitMQ's log"),
        };
        let why = error.get_message().to_string();
        let mut failure = Self::new(kind, "RabbitMQ refuses what the sink wants", why, next);
        failure.source = Some(Box::new(lapin::ErrorKind::ProtocolError(error).into()));
        failure
    }

    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    fn text(&self) -> String {
        format!("{}: {} ({})", self.what, self.why, self.next)
    }

    /// For messages that were not sent, or that the broker will not look at while it blocks us.
    pub(crate) fn outcome(&self) -> Outcome {
        let reason = Reason::new(self.text());
        Outcome::SinkDown(match self.ask_again {
            Some(delay) => reason.retry_after(delay),
            None => reason,
        })
    }

    /// For messages that it is the matter of.
    pub(crate) fn permanent(&self) -> Outcome {
        Outcome::Permanent(format!("{}; then replay the message", self.text()).into())
    }

    /// For messages that were sent.
    pub(crate) fn unknown(&self) -> Outcome {
        Outcome::Unknown(format!("sent, but not confirmed: {}", self.text()).into())
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
        let next = "correct the sink's settings";
        Self::new(error.kind(), "RabbitMQ cannot be used", error.to_string(), next)
    }
}

const MISSING: &str = "declare it on the broker, or let the sink do it: declare = \"active\"";
const DENIED: &str = "let the user write to it: rabbitmqctl set_permissions";

/// The broker closed the channel because of one message.
pub(crate) fn of_message(error: &AMQPError) -> Outcome {
    let why = error.get_message();
    let next = match error.kind() {
        AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND) => MISSING,
        AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) => DENIED,
        AMQPErrorKind::Soft(AMQPSoftError::CONTENTTOOLARGE | AMQPSoftError::PRECONDITIONFAILED) => {
            "make the message smaller, or raise RabbitMQ's max_message_size; set the sink's max_message_bytes to it"
        }
        AMQPErrorKind::Soft(AMQPSoftError::NOROUTE | AMQPSoftError::NOCONSUMERS | AMQPSoftError::RESOURCELOCKED)
        | AMQPErrorKind::Hard(_) => {
            return Outcome::Temporary(format!("RabbitMQ refused the message: {why} (look into its log)").into());
        }
    };
    Outcome::Permanent(format!("RabbitMQ refuses the message: {why} ({next}; then replay the message)").into())
}

/// Whether the broker complained about an exchange, not about what one message is like.
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

/// Whether what was to be declared is there, but with other properties.
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

/// Whether the broker may have ended the connection because of what one message is like. It tells when it ends it for another
/// reason.
pub(crate) fn may_be_due_to_a_message(error: &lapin::Error) -> bool {
    match error.kind() {
        lapin::ErrorKind::ProtocolError(error) => {
            !matches!(error.kind(), AMQPErrorKind::Hard(AMQPHardError::CONNECTIONFORCED))
        }
        lapin::ErrorKind::MissingHeartbeatError => false,
        // The client lets others match on it only with this arm.
        _ => true,
    }
}

/// No binding takes it. With `mandatory` the broker tells, and does not keep it.
pub(crate) fn unroutable(message: &Prepared, code: u16, text: &str) -> Outcome {
    let (exchange, key) = (&message.exchange, &message.routing_key);
    let lack = if exchange.as_str().is_empty() {
        format!("there is no queue {key:?}, which the default exchange would put it into (declare the queue")
    } else {
        format!(
            "no queue is bound to the exchange {:?} for the routing key {:?} (bind one, or give the exchange an \
             alternate-exchange",
            exchange.as_str(),
            key.as_str()
        )
    };
    let reason =
        format!("RabbitMQ returned the message as unroutable, {code} {text}: {lack}; then replay the message)");
    Outcome::Permanent(reason.into())
}

/// A queue did not take it: full with `overflow = reject-publish`, or without a leader.
pub(crate) fn nacked() -> Outcome {
    let reason = "RabbitMQ did not take the message: a queue it is routed to is full and rejects, or cannot store it now \
                  (consume from the queue, or raise its limit)";
    Outcome::Temporary(reason.into())
}

/// What the client says, and what it only says in a source. Neither holds more of a message than names.
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
            "cannot connect to RabbitMQ at amqp://host/: login refused (correct user and password: rabbitmqctl \
             authenticate_user)"
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
            panic!("blocked is down");
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
